"""Linearisations of a problem, dense or by products, and what they say of the leaves."""

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from .._typing import PyTree
from ..data import Views
from ..fitting import choose_trainable, free_memory, TooLarge
from ..integrators import AbstractIntegrator
from ..scene import Scene
from ._descent import large_system, small_system, System
from ._problem import make_problem, Options
from ._result import dense_uncertainty, diagonal_uncertainty, Layout, Uncertainty
from ._robust import LeastSquares
from ._system import compressed, Costs, costs, gradient, Problem
from ._unknowns import as_unknowns, Unknowns


# More unknowns than this are solved for by conjugate gradients.
_SMALL = 256

Covariance = Literal["auto", "dense", "diagonal"] | None


class Point(NamedTuple):
    """A linearisation: the system, the costs, and R or the diagonal of J^T W J."""

    system: System
    costs: Costs
    known: Any


class Method(NamedTuple):
    """A way to linearise a problem and to bound its leaves: densely, or by products."""

    problem: Problem
    covariance: Covariance
    paths: tuple[str, ...]
    key: Any

    def at_step(self, step: int) -> "Method":
        """Returns the method for the residuals of an iteration."""
        residuals = self.problem.residuals.at_step(step)
        return self._replace(problem=self.problem._replace(residuals=residuals))

    def is_small(self, unknowns: Unknowns) -> bool:
        return unknowns.size() <= _SMALL

    def linearise(self, unknowns: Unknowns) -> tuple[Point, int]:
        """Returns the linearisation, and what it took in renderings."""
        if self.is_small(unknowns):
            root, sums = compressed(self.problem, unknowns)
            return Point(small_system(root, sums.cost), sums, root), 1 + self.problem.colors
        total, diagonal, sums = gradient(self.problem, unknowns, self.key)
        # One rendering, its reverse derivative, and eight probes of the diagonal.
        return Point(large_system(total, diagonal, sums.cost), sums, diagonal), 10

    def unseen(self, point: Point, unknowns: Unknowns) -> list[str]:
        """Returns the paths of leaves on which no residual depends."""
        squares = np.asarray(point.known if point.known.ndim == 1 else point.known[:, :-1] ** 2)
        squares = squares if squares.ndim == 1 else squares.sum(axis=0)
        parts = np.split(squares, np.cumsum(unknowns.sizes())[:-1])
        return [path for path, part in zip(self.paths, parts, strict=True) if not part.any()]

    def is_dense(self, unknowns: Unknowns) -> bool:
        auto = self.covariance == "auto" and self.is_small(unknowns)
        return auto or self.covariance == "dense"

    def check_memory(self, unknowns: Unknowns) -> None:
        """Refuses a dense covariance for which there is no memory."""
        count, (free, where) = unknowns.size(), free_memory()
        # The covariance, R, singular vectors and copies of them, in double precision.
        needed = 8 * 8 * count**2
        if self.is_dense(unknowns) and needed > free:
            raise TooLarge(
                f"the covariance of {count:,} numbers needs {needed / 2**30:,.3g} GiB, and {where} "
                f'leaves {free / 2**30:,.3g}. Use `covariance="diagonal"`, or name fewer leaves in '
                "`trainable`."
            )

    def uncertainty(self, unknowns: Unknowns, sigma: float | None) -> Uncertainty:
        """Computes it from the unweighted Jacobian, at the solution."""
        plain = self.problem._replace(loss=LeastSquares())
        sums = costs(self.problem, unknowns)
        count, variance = int(sums.number), None if sigma is None else sigma**2
        # Huber's: sum (w r)^2 / mean(d(w r)/dr)^2, over the degrees of freedom.
        weighted = float(sums.squares) / (float(sums.derivatives) / count) ** 2
        layout = _layout(unknowns, self.paths)
        if self.is_dense(unknowns):
            root, _ = compressed(plain, unknowns)
            eps = float(jnp.finfo(root.dtype).eps)
            return dense_uncertainty(layout, root, variance, weighted, count, eps)
        _, diagonal, _ = gradient(plain, unknowns, self.key)
        return diagonal_uncertainty(layout, diagonal, variance, weighted, count)


def _layout(unknowns: Unknowns, paths: tuple[str, ...]) -> Layout:
    leaves = [np.asarray(x) for x in jax.tree.leaves(unknowns.free)]
    shape = lambda x, turn: (*x.shape[:-1], 3) if turn else x.shape
    pairs = zip(leaves, unknowns.turns, strict=True)
    return Layout(paths, tuple(shape(x, t) for x, t in pairs), tuple(leaves))


def linear_uncertainty(
    scene: Scene,
    views: Views,
    trainable: Sequence[str] | PyTree | None,
    sigma: float | None,
    integrator: AbstractIntegrator | None,
) -> Uncertainty:
    """Computes how well pictures determine leaves, at the scene as it is."""
    unknowns, paths = as_unknowns(scene, choose_trainable(scene, trainable))
    problem = make_problem(scene, views, unknowns, paths, Options(integrator=integrator))
    method = Method(problem, "auto", paths, jax.random.key(0))
    method.check_memory(unknowns)
    return method.uncertainty(unknowns, sigma)
