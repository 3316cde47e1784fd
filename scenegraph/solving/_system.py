"""Sums over blocks of residuals: costs, compressed Jacobians, gradients, products with J^T W J."""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp

from .._typing import Array, Float, Int, Scalar
from ..numerics import matmul
from ._residuals import Block, Residuals
from ._robust import AbstractRobustLoss
from ._unknowns import Unknowns


class Problem(NamedTuple):
    """A least-squares problem: residuals, loss, and the sharing of derivatives.

    Unknowns of one camera alone move no pixel of another, so that those of several cameras share
    one derivative: `color` is the number of that derivative, `owner` the camera, or -1.
    """

    residuals: Residuals
    loss: AbstractRobustLoss
    color: Int[Array, " unknowns"]
    owner: Int[Array, " unknowns"]
    colors: int


class Costs(NamedTuple):
    """Half the robust sum; numbers of residuals, of those not finite, of pixels left out."""

    cost: Scalar
    number: Int[Array, ""]
    bad: Int[Array, ""]
    first_bad: Int[Array, ""]
    left_out: Int[Array, ""]
    # Sums of (w r)^2, and of d(w r)/dr, for covariances.
    squares: Scalar
    derivatives: Scalar


def _costs(problem: Problem, block: Block, rows: Array) -> Costs:
    squares = block.values**2
    loss, finite = problem.loss, jnp.isfinite(block.values)
    count = finite.shape[0]
    row = jnp.repeat(rows, count // rows.shape[0])
    first = jnp.min(jnp.where(finite, jnp.iinfo(rows.dtype).max, row))
    # 1/2 sum rho(r^2), and psi(r) = w(r^2) r with its derivative
    influence = lambda r: r * loss.weight(r**2)
    psi, derivative = jax.jvp(influence, (block.values,), (jnp.ones_like(block.values),))
    return Costs(
        0.5 * jnp.sum(jnp.where(block.counts, loss.cost(squares), 0.0)),
        jnp.sum(block.counts),
        jnp.sum(~finite),
        first,
        block.left_out,
        jnp.sum(psi**2),
        jnp.sum(jnp.where(block.counts, derivative, 0.0)),
    )


def _total(parts: Costs) -> Costs:
    sums = jax.tree.map(lambda x: jnp.sum(x, axis=0), parts)
    return sums._replace(first_bad=jnp.min(parts.first_bad))


@eqx.filter_jit
def costs(problem: Problem, unknowns: Unknowns) -> Costs:
    """Computes the cost of a scene: one rendering of all pixels."""
    scene = unknowns.scene()

    def one(rows: Array) -> Costs:
        return _costs(problem, problem.residuals(scene, rows), rows)

    return _total(jax.lax.map(one, problem.residuals.blocks()))


def _at(problem: Problem, unknowns: Unknowns, rows: Array) -> Any:
    """Returns the residuals of a block as a function of the tangent vector."""

    def values(delta: Array) -> tuple[Array, Block]:
        block = problem.residuals(unknowns.moved(delta).scene(), rows)
        return block.values, block

    return values


def jacobian(
    problem: Problem, unknowns: Unknowns, rows: Array
) -> tuple[Float[Array, "residuals unknowns"], Block]:
    """Computes the derivatives of a block's residuals, a forward derivative for each color."""
    seeds = (problem.color == jnp.arange(problem.colors)[:, None]).astype(unknowns.zeros().dtype)
    values = _at(problem, unknowns, rows)

    def along(seed: Array) -> tuple[Array, Block]:
        _, derivative, block = jax.jvp(values, (unknowns.zeros(),), (seed,), has_aux=True)
        return derivative, block

    # A seed moves all unknowns of one color at once, and no residual depends on more than one of
    # them: Curtis, Powell and Reid 1974, "On the Estimation of Sparse Jacobian Matrices".
    columns, block = jax.vmap(along, out_axes=(0, None))(seeds)
    ours = (problem.owner < 0) | (problem.owner == block.camera[:, None])
    return jnp.where(ours & block.counts[:, None], columns[problem.color].T, 0.0), block


@eqx.filter_jit
def compressed(problem: Problem, unknowns: Unknowns) -> tuple[Float[Array, "rows columns"], Costs]:
    """Computes R of the QR factors of [J, r], weighted by rows: all that a small problem needs.

    Blocks are stacked below the R of those before (Golub and Van Loan, 2013, section 5.3): memory
    does not grow with the pictures, and the condition number is not squared.
    """
    size = unknowns.size() + 1

    def one(root: Array, rows: Array) -> tuple[Array, Costs]:
        derivatives, block = jacobian(problem, unknowns, rows)
        weight = jnp.sqrt(problem.loss.weight(block.values**2))
        stacked = weight[:, None] * jnp.column_stack([derivatives, block.values])
        # [R_k; W^1/2 [J, r]] = Q R_{k+1}
        root = triangle(jnp.concatenate([root, stacked.astype(root.dtype)]))
        return root, _costs(problem, block, rows)

    start = jnp.zeros((size, size), unknowns.zeros().dtype)
    root, parts = jax.lax.scan(one, start, problem.residuals.blocks())
    return root, _total(parts)


def triangle(matrix: Float[Array, "rows columns"]) -> Float[Array, "columns columns"]:
    """Computes R of the QR factors of a tall matrix, by Householder's reflections.

    LAPACK's takes ten times as long for ten thousand rows, and fifty times on a busy machine.
    """
    places = jnp.arange(matrix.shape[0])

    def reflect(column: Array, matrix: Array) -> Array:
        # A <- A - 2 v v^T A / |v|^2 with v = a + sign(a_j) |a| e_j, of the part a below the row j
        part = jnp.where(places >= column, matrix[:, column], 0.0)
        away = jnp.where(part[column] < 0, -1.0, 1.0) * jnp.linalg.norm(part)
        normal = part.at[column].add(away)
        square = jnp.sum(normal**2)
        factor = jnp.where(square > 0, 2 / jnp.where(square > 0, square, 1.0), 0.0)
        return matrix - jnp.outer(factor * normal, matmul(normal, matrix))

    reflected = jax.lax.fori_loop(0, matrix.shape[1], reflect, matrix)
    return jnp.triu(reflected[: matrix.shape[1]])


@eqx.filter_jit
def gradient(
    problem: Problem, unknowns: Unknowns, key: Array, probes: int = 8
) -> tuple[Array, Array, Costs]:
    """Computes J^T W r, an estimate of the diagonal of J^T W J, and the costs."""

    def one(carry: tuple, item: tuple) -> tuple[tuple, Costs]:
        rows, number = item
        values = _at(problem, unknowns, rows)
        _, vjp, block = jax.vjp(values, unknowns.zeros(), has_aux=True)
        weight = problem.loss.weight(block.values**2)
        # E (J^T W^1/2 z)_j^2 = (J^T W J)_jj for z of random signs, block by block
        shape = (probes, *weight.shape)
        signs = jax.random.rademacher(jax.random.fold_in(key, number), shape, weight.dtype)
        squares = jax.vmap(lambda z: vjp(jnp.sqrt(weight) * z)[0] ** 2)(signs)
        sums = carry[0] + vjp(weight * block.values)[0], carry[1] + jnp.mean(squares, axis=0)
        return sums, _costs(problem, block, rows)

    blocks, zeros = problem.residuals.blocks(), unknowns.zeros()
    items = blocks, jnp.arange(blocks.shape[0])
    (total, diagonal), parts = jax.lax.scan(one, (zeros, zeros), items)
    return total, diagonal, _total(parts)


def product(problem: Problem, unknowns: Unknowns, vector: Array) -> Array:
    """Computes J^T W J v, a block at a time, by one forward and one reverse derivative."""

    def one(total: Array, rows: Array) -> tuple[Array, None]:
        values = _at(problem, unknowns, rows)
        base, push, block = jax.linearize(values, unknowns.zeros(), has_aux=True)
        weight = problem.loss.weight(base**2)
        # J^T (W (J v))
        vjp = jax.linear_transpose(push, unknowns.zeros())
        return total + vjp(weight * push(vector))[0], None

    return jax.lax.scan(one, unknowns.zeros(), problem.residuals.blocks())[0]
