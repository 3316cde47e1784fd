"""The report on residuals at the solution: covariance, rank, undetermined directions."""

import dataclasses
from typing import Any

import numpy as np

from .._typing import PyTree
from ..scene import describe as describe_scene


@dataclasses.dataclass(frozen=True)
class Direction:
    """A direction in which leaves may move without a change of any residual: the moves by path.

    A quaternion moves by a rotation vector in its own frame, in radians. The largest number is 1.
    """

    moves: dict[str, np.ndarray]

    def __str__(self) -> str:
        return " with ".join(f"`{path}` by {_short(move)}" for path, move in self.moves.items())


def _short(move: np.ndarray) -> str:
    numbers = [f"{x:.3g}" for x in np.ravel(move)]
    if len(numbers) > 8:
        numbers = [*numbers[:8], "..."]
    return numbers[0] if move.ndim == 0 else f"({', '.join(numbers)})"


@dataclasses.dataclass(frozen=True)
class Uncertainty:
    """The precision with which residuals determine leaves, from the Jacobian at the solution.

    **Arguments:**

    - `sigma`: the standard deviation of a residual, estimated from all of them or given.
    - `residuals`: the number of residuals that count.
    - `rank`: the number of directions that they determine; `None` if only a diagonal is known.
    - `covariance`: the covariance of all unknowns, in the order of `paths`; `None` if only a
      diagonal is known. Of directions that are not determined, it is zero.
    - `standard_errors`: the standard errors of the leaves, by path, in the shape of the leaf;
      three for a quaternion, of a rotation vector in its own frame. Infinite where the residuals
      do not determine the number. Where only a diagonal is known, those for all other numbers
      given, which are lower bounds.
    - `undetermined`: the directions that the residuals do not determine, each as `moves` of leaves
      by path, the largest number of which is 1.
    - `unseen`: the paths of leaves on which no residual depends.
    - `paths`: the path of each unknown.
    """

    sigma: float
    residuals: int
    rank: int | None
    covariance: np.ndarray | None
    standard_errors: dict[str, np.ndarray]
    undetermined: tuple[Direction, ...]
    unseen: tuple[str, ...]
    paths: tuple[str, ...]

    @property
    def degrees_of_freedom(self) -> int:
        """The number of residuals beyond those that determine the unknowns."""
        return self.residuals - (len(self.paths) if self.rank is None else self.rank)

    def table(self) -> str:
        """Writes standard errors, and what is not determined, as text.

        **Returns:**

        One line per leaf, then one per undetermined direction.
        """
        width = max(len(path) for path in self.standard_errors)
        lines = [f"{'leaf':{width}}  standard error"]
        lines += [f"{path:{width}}  {_short(e)}" for path, e in self.standard_errors.items()]
        rank = "" if self.rank is None else f"; {self.rank} of {len(self.paths)} unknowns"
        lines.append(f"sigma {self.sigma:.4g}, from {self.residuals} residuals{rank} determined")
        return "\n".join(lines + [f"not determined: {x}" for x in self.undetermined])


@dataclasses.dataclass(frozen=True)
class SolveResult:
    """The result of `solve`.

    **Arguments:**

    - `scene`: the scene, with the leaves that were found.
    - `costs`: half the (robust) sum of squares, at the start and after each iteration.
    - `converged`: true if a further step would move no direction by more than the tolerance.
    - `reason`: why the iteration ended, as a sentence.
    - `renders`: the number of times that all pixels were rendered; forward derivatives count as
      one each.
    - `uncertainty`: covariance, standard errors, rank, and directions that are not determined;
      `None` if it was not wanted.
    """

    scene: PyTree
    costs: np.ndarray
    converged: bool
    reason: str
    renders: int
    uncertainty: Uncertainty | None

    @property
    def iterations(self) -> int:
        """The number of iterations."""
        return len(self.costs) - 1

    def describe(self) -> str:
        """Describes the scene as `sg.describe` does, with the standard errors below.

        **Returns:**

        Several lines of text.
        """
        text = f"{describe_scene(self.scene)}\n{self.reason}"
        return text if self.uncertainty is None else f"{text}\n{self.uncertainty.table()}"


@dataclasses.dataclass(frozen=True)
class Layout:
    """The chosen leaves: paths, shapes in unknowns, and sizes of values."""

    paths: tuple[str, ...]
    shapes: tuple[tuple[int, ...], ...]
    values: tuple[np.ndarray, ...]

    def split(self, vector: np.ndarray) -> dict[str, np.ndarray]:
        """Splits a vector of all unknowns by leaf."""
        ends = np.cumsum([int(np.prod(shape)) for shape in self.shapes])[:-1]
        parts = zip(self.paths, np.split(vector, ends), self.shapes, strict=True)
        return {path: part.reshape(shape) for path, part, shape in parts}

    def names(self) -> tuple[str, ...]:
        """Returns the path of each unknown."""
        pairs = zip(self.paths, self.shapes, strict=True)
        return tuple(path for path, shape in pairs for _ in range(int(np.prod(shape))))

    def reach(self) -> np.ndarray:
        """Returns how far each leaf is thought to move at most: 1 + its largest number."""
        reach = [1 + np.max(np.abs(x), initial=0.0) for x in self.values]
        return np.repeat(reach, [int(np.prod(shape)) for shape in self.shapes])


def dense_uncertainty(
    layout: Layout, root: Any, variance: float | None, weighted: float, count: int, eps: float
) -> Uncertainty:
    """Computes everything from R of the Jacobian's QR factors, by its singular values.

    `variance` is that of a residual if it is known; else it is `weighted` over the degrees of
    freedom. cov = s^2 S V diag(1 / s_i^2) V^T S, over the directions that are determined.
    """
    matrix = np.asarray(root, np.float64)[:, :-1]
    lengths = np.linalg.norm(matrix, axis=0)
    # A number counts if its move, as far as the leaf may go, changes the residuals by more than
    # their rounding: eps each, sqrt(count) eps together.
    seen = lengths * layout.reach() > 8 * eps * np.sqrt(count)
    scale = np.where(seen, 1 / np.where(seen, lengths, 1.0), layout.reach())
    _, singular, rows = np.linalg.svd(matrix * np.where(seen, scale, 0.0))
    # Derivatives in single precision are right to about five digits.
    good = singular > eps**0.7
    rank, kept, lost = int(np.sum(good)), rows[good], rows[~good]
    variance = weighted / max(count - rank, 1) if variance is None else variance
    # With J S = U diag(s) V^T: cov = variance S V diag(s)^-2 V^T S = variance half half^T.
    half = scale[:, None] * kept.T / singular[good]
    covariance = variance * half @ half.T
    # A number is undetermined where the null space has a part along it.
    free = np.sqrt(np.sum(lost**2, axis=0)) > np.sqrt(eps)
    errors = np.where(free, np.inf, np.sqrt(np.diag(covariance)))
    unseen = [path for path, part in layout.split(seen).items() if not np.any(part)]
    return Uncertainty(
        float(variance) ** 0.5,
        count,
        rank,
        covariance,
        layout.split(errors),
        tuple(_direction(layout, scale * row) for row in _sparse(lost)),
        tuple(unseen),
        layout.names(),
    )


def diagonal_uncertainty(
    layout: Layout, diagonal: Any, variance: float | None, weighted: float, count: int
) -> Uncertainty:
    """Computes standard errors for all other unknowns given, 1 / sqrt((J^T J)_jj)."""
    diagonal = np.asarray(diagonal, np.float64)
    known = weighted / max(count - diagonal.size, 1) if variance is None else variance
    with np.errstate(divide="ignore"):
        errors = np.sqrt(known / diagonal)
    unseen = [path for path, part in layout.split(diagonal).items() if not np.any(part)]
    return Uncertainty(
        float(known) ** 0.5,
        count,
        None,
        None,
        layout.split(errors),
        (),
        tuple(unseen),
        layout.names(),
    )


def _sparse(rows: np.ndarray) -> np.ndarray:
    """Returns a basis of the same space with few entries, by elimination with full pivots."""
    rows = rows.copy()
    for i in range(len(rows)):
        # Gauss and Jordan: row i becomes 1 in its pivot's column, all others 0.
        j, k = np.unravel_index(np.argmax(np.abs(rows[i:])), rows[i:].shape)
        rows[[i, i + j]] = rows[[i + j, i]]
        rows[i] /= rows[i, k]
        others = np.arange(len(rows)) != i
        rows[others] -= rows[others, k : k + 1] * rows[i]
    return rows


def _direction(layout: Layout, vector: np.ndarray) -> Direction:
    """Names a direction by the leaves that have more than a thousandth of it."""
    vector = vector / np.max(np.abs(vector))
    share = np.where(np.abs(vector) > 1e-3, vector, 0.0)
    return Direction({path: part for path, part in layout.split(share).items() if np.any(part)})
