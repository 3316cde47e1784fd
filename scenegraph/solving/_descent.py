"""Levenberg and Marquardt's step, and the test of it, by optimistix and lineax."""

import math
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp

from .._typing import Array, Float, Scalar
from ..numerics import matmul
from ._system import Problem, product
from ._unknowns import Unknowns


FIRST_STEP, LARGEST_STEP, SMALLEST_STEP = 1e2, 1e10, 1e-8
# The relative residual of conjugate gradients, and their number.
_CG_TOLERANCE, _CG_STEPS = 1e-3, 100


class System(NamedTuple):
    """The linearised problem, in unknowns that are divided by `scale`.

    `root` is R of the QR factors of [J S, r]; `None` where products with J are used instead.
    """

    cost: Scalar
    gradient: Float[Array, " unknowns"]
    scale: Float[Array, " unknowns"]
    root: Float[Array, "rows columns"] | None


def small_system(root: Float[Array, "rows columns"], cost: Scalar) -> System:
    """Makes the system of a compressed Jacobian; its columns then have length one."""
    matrix, right = root[:, :-1], root[:, -1]
    # S = diag(1 / |column|): the gradient S R^T Q^T r, and [R S, Q^T r]
    scale = _inverse_lengths(jnp.sum(matrix**2, axis=0))
    scaled = jnp.column_stack([matrix * scale, right])
    return System(cost, scale * matmul(matrix.T, right), scale, scaled)


def large_system(gradient: Array, diagonal: Array, cost: Scalar) -> System:
    """Makes the system of a gradient and the diagonal of J^T W J."""
    # S = diag(J^T W J)^(-1/2), and S g
    scale = _inverse_lengths(diagonal)
    return System(cost, scale * gradient, scale, None)


def _inverse_lengths(squares: Array) -> Array:
    return jnp.where(squares > 0, 1 / jnp.sqrt(jnp.where(squares > 0, squares, 1.0)), 0.0)


def _solvers() -> tuple[Any, Any]:
    """Imports lineax and optimistix: it takes a tenth of a second, and most fits do without."""
    import lineax
    import optimistix

    return lineax, optimistix


def _search() -> Any:
    """Returns the rule of the step size, which is 1 / damping.

    Accepted steps that do as predicted multiply it; rejected ones divide it.
    """
    _, optx = _solvers()
    return optx.ClassicalTrustRegion(
        high_cutoff=0.75, low_cutoff=1e-3, high_constant=10.0, low_constant=0.1
    )


@eqx.filter_jit
def propose(
    problem: Problem, unknowns: Unknowns, system: System, step_size: Scalar
) -> tuple[Array, Array, Scalar]:
    """Returns the damped step, scaled and not, and the decrease of the cost that it promises."""
    lx, optx = _solvers()
    information = _information(problem, unknowns, system)
    if system.root is None:
        solver: Any = lx.CG(_CG_TOLERANCE, 0.0, max_steps=_CG_STEPS)
        descent, curve = optx.DampedNewtonDescent(linear_solver=solver), information
    else:
        # min |[R; sqrt(damping)] d + [Q^T r; 0]| by QR, without the normal equations.
        matrix, right = system.root[:, :-1], system.root[:, -1]
        curve = optx.FunctionInfo.ResidualJac(right, lx.MatrixLinearOperator(matrix))
        solver = lx.QR()
    descent, state = optx.DampedNewtonDescent(linear_solver=solver), None
    # (S J^T W J S + I / step_size) d = -S J^T W r
    scaled, _ = descent.step(step_size, descent.query(system.gradient, curve, state))
    # -(g . d + d . H d / 2)
    promise = -_search().predict_reduction(scaled, information)
    return scaled, system.scale * scaled, promise


@eqx.filter_jit
def judge(
    problem: Problem,
    unknowns: Unknowns,
    system: System,
    scaled: Array,
    cost: Scalar,
    step_size: Scalar,
) -> tuple[Scalar, Array]:
    """Returns the next step size, and whether a step is accepted."""
    (_, optx), search = _solvers(), _search()
    information = _information(problem, unknowns, system)
    tried = optx.FunctionInfo.Eval(jnp.where(jnp.isfinite(cost), cost, jnp.inf))
    state = search.init(scaled, information)
    state = eqx.tree_at(lambda s: s.step_size, state, step_size)
    size, accepted, _, _ = search.step(
        jnp.array(False), jnp.zeros_like(scaled), scaled, information, tried, state
    )
    return jnp.minimum(size, LARGEST_STEP), accepted


def _information(problem: Problem, unknowns: Unknowns, system: System) -> Any:
    """Returns value, gradient and Gauss and Newton's Hessian, S J^T W J S."""
    lx, optx = _solvers()
    like, tag = jax.eval_shape(lambda: system.gradient), lx.positive_semidefinite_tag
    if system.root is None:
        multiply = lambda v: system.scale * product(problem, unknowns, system.scale * v)
        hessian: Any = lx.FunctionLinearOperator(multiply, like, tag)
    else:
        matrix = system.root[:, :-1]
        hessian = lx.MatrixLinearOperator(matmul(matrix.T, matrix), tag)
    return optx.FunctionInfo.EvalGradHessian(system.cost, system.gradient, hessian)


def rounding(cost: float, dtype: Any) -> float:
    """Returns the part of a cost below which its decrease is not seen for rounding."""
    return 32 * float(jnp.finfo(dtype).eps) * cost + math.ulp(0.0)
