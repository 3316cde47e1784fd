import dataclasses
import operator
import warnings
from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from .._typing import IntLike, PyTree, RandomKey
from .._words import describe
from ..data import RayBatches, SceneCameras, Views
from ..fitting import choose_trainable, free_memory, in_stated_space, TooLarge
from ..integrators import AbstractIntegrator, choose_integrator
from ..io import MappedArray
from ..rendering import check_scene, choose_chunk
from ..scene import color_space, Scene, ties
from ._descent import (
    FIRST_STEP,
    judge,
    large_system,
    LARGEST_STEP,
    propose,
    rounding,
    small_system,
    SMALLEST_STEP,
    System,
)
from ._residuals import FunctionResiduals, PictureResiduals, Residuals
from ._result import dense_uncertainty, diagonal_uncertainty, Layout, SolveResult, Uncertainty
from ._robust import AbstractRobustLoss, LeastSquares
from ._system import compressed, Costs, costs, gradient, Problem
from ._unknowns import as_unknowns, Unknowns


# More unknowns than this are solved for by conjugate gradients.
_SMALL = 256
# Samples of a block, over all forward derivatives.
_SAMPLES = 2**20
# Steps whose decrease of the cost is lost in rounding are taken on trust, so many times.
_TRUSTED = 3

Covariance = Literal["auto", "dense", "diagonal"] | None


def solve(
    scene: PyTree,
    views: Views | Callable[[Any], Any],
    *,
    trainable: Sequence[str] | PyTree | None = None,
    loss: AbstractRobustLoss = LeastSquares(),
    integrator: AbstractIntegrator | None = None,
    steps: IntLike = 50,
    tolerance: float = 0.01,
    covariance: Covariance = "auto",
    sigma: float | None = None,
    key: RandomKey | None = None,
) -> SolveResult:
    """Finds leaves of a scene by nonlinear least squares, with their standard errors.

    Levenberg and Marquardt's method on the differences of all pixels, one for each channel. Pixels
    are rendered a block at a time, so that memory does not grow with the pictures. Up to 256
    numbers are solved for by a QR factorisation of the Jacobian, more by conjugate gradients on
    the normal equations, which take products with the Jacobian only. Rotations move on their
    group: the length of a quaternion is no unknown.

    **Arguments:**

    - `scene`: the scene to start from; or any Module, with a function as `views`.
    - `views`: the pictures with their cameras (see `sg.views`), which may be paths of cameras in
      the scene; or a function of the scene that returns residuals, an array.
    - `trainable`: paths (see `select`) or a tree of booleans; by default every floating leaf that
      is not frozen. Keyword only, as is all that follows.
    - `loss`: `LeastSquares()`, or for pictures with outliers `Huber(scale)` or `Cauchy(scale)`.
    - `integrator`: the integrator that renders the rays; by default the scene's.
    - `steps`: the largest number of iterations.
    - `tolerance`: the iteration ends when a step promises to move every direction by less than
      this part of its standard error.
    - `covariance`: `"dense"`; `"diagonal"`, standard errors of single numbers for all others
      given; `"auto"`, dense for up to 256 numbers; or `None`.
    - `sigma`: the standard deviation of a residual, if it is known; by default the root of the
      sum of squares over the degrees of freedom, residuals minus rank.
    - `key`: the key of jittered samples, the same in all iterations; `None` is deterministic.

    **Returns:**

    The scene, the costs, and how certain the leaves are: see `SolveResult`.

    **Errors:**

    `ValueError` if nothing is trainable, a leaf named in `trainable` changes no residual, there are
    fewer residuals than unknowns, or residuals are not finite at the start; for `steps` that are
    negative, `tolerance` or `sigma` that is not positive. `TypeError` for `steps` that are no whole
    number, such as infinity. `TooLarge`, a `MemoryError`, if a dense covariance has no place.

    **Source:** Moré, "The Levenberg-Marquardt algorithm: implementation and theory", 1978; of
    robust losses, the covariance is that of Huber, "Robust Statistics", 1981, section 7.6.

    Example: the radius of a ball, from one picture.

    ```python
    scene = sg.Scene(sg.Group(ball=sg.Surface(sg.Sphere(radius=0.5), sg.Constant([1, 0, 0]))))
    camera = sg.PerspectiveCamera.look_at([0, -3, 1], [0, 0, 0], [0, 0, 1], 0.8, 16, 12)
    pictures = sg.views(camera, sg.render(scene, camera))
    guess = eqx.tree_at(lambda s: s.root["ball"].shape.radius, scene, jnp.asarray(0.4))
    result = sg.solve(guess, pictures, trainable=["ball.shape.radius"])
    print(result.uncertainty.standard_errors["ball.shape.radius"])
    ```
    """
    steps = _check_numbers(steps, tolerance, sigma, covariance)
    chosen = choose_trainable(scene, trainable)
    unknowns, paths = as_unknowns(scene, chosen)
    problem = make_problem(scene, views, unknowns, paths, loss, integrator, key)
    method = _Method(problem, covariance, paths, jax.random.key(0) if key is None else key)
    method.check_memory(unknowns)
    found, history, renders, reason = _iterate(method, unknowns, steps, tolerance, trainable)
    certain = None if covariance is None else method.uncertainty(found, sigma)
    converged = reason.startswith("converged")
    return SolveResult(found.scene(), np.asarray(history), converged, reason, renders, certain)


def _check_numbers(steps: Any, tolerance: float, sigma: float | None, covariance: Any) -> int:
    """Refuses arguments that would fail late; returns the number of steps."""
    try:
        steps = operator.index(steps)
    except TypeError:
        raise TypeError(
            f"`steps` of `solve` must be a whole number, after which it ends; got {steps!r}."
        ) from None
    if steps < 0:
        raise ValueError(f"`steps` must not be negative; got {steps}.")
    for name, value in (("tolerance", tolerance), ("sigma", sigma)):
        if value is not None and not 0 < value < np.inf:
            raise ValueError(f"`{name}` must be positive and finite; got {value}.")
    if covariance not in ("auto", "dense", "diagonal", None):
        raise ValueError(
            f'`covariance` must be "auto", "dense", "diagonal" or None; got {covariance!r}.'
        )
    return steps


def make_problem(
    scene: PyTree,
    views: Any,
    unknowns: Unknowns,
    paths: tuple[str, ...],
    loss: AbstractRobustLoss,
    integrator: AbstractIntegrator | None,
    key: RandomKey | None,
) -> Problem:
    """Puts together residuals and derivatives."""
    sizes, count = np.asarray(unknowns.sizes()), unknowns.count()
    if not isinstance(views, Views):
        if not callable(views):
            raise TypeError(
                "`views` of `solve` must be `Views` (see `sg.views`) or a function of the scene "
                f"that returns residuals; got {describe(views)}."
            )
        every = jnp.arange(count), jnp.full(count, -1)
        return Problem(FunctionResiduals(views), loss, *every, count)
    check_scene(scene)
    numbers, owner = _owners(scene, views, paths)
    color, colors = _colors(np.repeat(owner, sizes))
    decided = choose_integrator(scene, integrator).with_budget(float("inf"))
    residuals = _picture_residuals(scene, views, decided, key, numbers, colors)
    return Problem(residuals, loss, jnp.asarray(color), jnp.asarray(np.repeat(owner, sizes)), colors)


def _picture_residuals(
    scene: Scene,
    views: Views,
    integrator: AbstractIntegrator,
    key: RandomKey | None,
    numbers: np.ndarray,
    colors: int,
) -> PictureResiduals:
    if isinstance(views.pixels, MappedArray):
        pixels = jnp.asarray(views.pixels.take(np.arange(views.pixels.shape[0])))
        views = dataclasses.replace(views, pixels=pixels)
    space, count = color_space(scene), views.pixels.shape[0]
    views = in_stated_space(views, space)
    size = choose_chunk("auto", count, integrator, samples_on_cpu=_SAMPLES // (1 + min(colors, 64)))
    # Blocks of like size, so that few rows are padding.
    size = -(-count // -(-count // size))
    batches = RayBatches(views, size, space=space)
    return PictureResiduals(batches, integrator, key, jnp.asarray(numbers), count)


def _owners(scene: PyTree, views: Views, paths: tuple[str, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Returns the camera of each picture, and of each leaf that moves the pixels of one alone."""
    if not isinstance(views.cameras, SceneCameras):
        return np.zeros(views.frames, np.int32), np.full(len(paths), -1)
    cameras = list(dict.fromkeys(views.cameras.paths))
    shared = {leader for _, leader in ties(scene)}

    def owner(path: str) -> int:
        own = (i for i, camera in enumerate(cameras) if path.startswith(f"{camera}."))
        return -1 if path in shared else next(own, -1)

    numbers = [cameras.index(path) for path in views.cameras.paths]
    return np.asarray(numbers, np.int32), np.asarray([owner(path) for path in paths])


def _colors(owner: np.ndarray) -> tuple[np.ndarray, int]:
    """Numbers derivatives: one for each shared unknown, others shared by one of each camera."""
    color, used = np.zeros(owner.size, int), {}
    shared = int(np.sum(owner < 0))
    color[owner < 0] = np.arange(shared)
    for index in np.flatnonzero(owner >= 0):
        used[owner[index]] = used.get(owner[index], -1) + 1
        color[index] = shared + used[owner[index]]
    return color, int(color.max()) + 1


class _Point(NamedTuple):
    """A linearisation: the system, the costs, and R or the diagonal of J^T W J."""

    system: System
    costs: Costs
    known: Any


class _Method(NamedTuple):
    """A way to linearise a problem and to bound its leaves: densely, or by products."""

    problem: Problem
    covariance: Covariance
    paths: tuple[str, ...]
    key: Any

    def is_small(self, unknowns: Unknowns) -> bool:
        return unknowns.count() <= _SMALL

    def linearise(self, unknowns: Unknowns) -> tuple[_Point, int]:
        """Returns the linearisation, and what it took in renderings."""
        if self.is_small(unknowns):
            root, sums = compressed(self.problem, unknowns)
            return _Point(small_system(root, sums.cost), sums, root), 1 + self.problem.colors
        slope, diagonal, sums = gradient(self.problem, unknowns, self.key)
        return _Point(large_system(slope, diagonal, sums.cost), sums, diagonal), 10

    def unseen(self, point: _Point, unknowns: Unknowns) -> list[str]:
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
        count, (free, where) = unknowns.count(), free_memory()
        # The covariance, R, singular vectors and copies of them, in double precision.
        needed = 8 * 8 * count**2
        if self.is_dense(unknowns) and needed > free:
            raise TooLarge(
                f"the covariance of {count:,} numbers needs {needed / 2**30:,.1f} GiB, and {where} "
                f'leaves {free / 2**30:,.1f}. Use `covariance="diagonal"`, or name fewer leaves in '
                "`trainable`."
            )

    def uncertainty(self, unknowns: Unknowns, sigma: float | None) -> Uncertainty:
        """Computes it from the unweighted Jacobian, at the solution."""
        plain = self.problem._replace(loss=LeastSquares())
        sums = costs(self.problem, unknowns)
        count, variance = int(sums.count), None if sigma is None else sigma**2
        # Huber's: sum (w r)^2 / mean(d(w r)/dr)^2, over the degrees of freedom.
        weighted = float(sums.squares) / (float(sums.slopes) / count) ** 2
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


def _iterate(
    method: _Method, unknowns: Unknowns, steps: int, tolerance: float, trainable: Any
) -> tuple[Unknowns, list[float], int, str]:
    """Takes steps until they no longer matter."""
    point, renders = method.linearise(unknowns)
    _check_start(method, point, unknowns, trainable)
    history, size, trusted = [float(point.costs.cost)], FIRST_STEP, 0
    for _ in range(steps):
        noise = rounding(history[-1], point.system.slope.dtype)
        scaled, delta, promise = propose(method.problem, unknowns, point.system, jnp.asarray(size))
        small = float(promise) <= _least_promise(point.costs, unknowns, tolerance)
        if small or float(promise) <= noise and trusted == _TRUSTED:
            return unknowns, history, renders, _converged(len(history) - 1)
        moved, renders = unknowns.moved(delta), renders + 1
        sums = costs(method.problem, moved)
        arguments = method.problem, unknowns, point.system, scaled, sums.cost, jnp.asarray(size)
        size, accepted = (x.item() for x in judge(*arguments))
        if float(promise) <= noise and np.isfinite(float(sums.cost)):
            accepted, size, trusted = True, LARGEST_STEP, trusted + 1
        if accepted:
            unknowns = moved
            point, more = method.linearise(unknowns)
            renders += more
        elif size < SMALLEST_STEP:
            return unknowns, history, renders, "stopped: no step lowers the cost."
        history.append(float(point.costs.cost))
    return unknowns, history, renders, f"stopped after {steps} iterations, before it converged."


def _converged(iterations: int) -> str:
    return f"converged in {iterations} iterations."


def _least_promise(sums: Costs, unknowns: Unknowns, tolerance: float) -> float:
    """Returns the decrease of the cost that moves every direction by `tolerance` errors."""
    # |R d|^2 / 2 <= tolerance^2 s^2 / 2 with s^2 = 2 cost / (residuals - unknowns)
    count, eps = int(sums.count), float(jnp.finfo(unknowns.zeros().dtype).eps)
    variance = 2 * float(sums.cost) / max(count - unknowns.count(), 1)
    return 0.5 * tolerance**2 * max(variance, (8 * eps) ** 2)


def _check_start(method: _Method, point: _Point, unknowns: Unknowns, trainable: Any) -> None:
    """Refuses what cannot be solved, and says why."""
    sums, count = point.costs, unknowns.count()
    if int(sums.bad):
        raise ValueError(
            f"{int(sums.bad)} residuals are not finite at the start, the first {_place(method, sums)}. "
            "Check the pictures and the scene there, or give these pixels the weight 0."
        )
    if int(sums.left_out):
        warnings.warn(
            f"{int(sums.left_out)} pixels are left out, for want of layers or samples; give "
            "`solve` an `integrator` with more.",
            stacklevel=4,
        )
    if int(sums.count) < count:
        raise ValueError(
            f"there are {int(sums.count)} residuals for {count} unknowns. Add pictures, or name "
            "fewer leaves in `trainable`."
        )
    unseen = [] if trainable is None else method.unseen(point, unknowns)
    if unseen:
        raise ValueError(
            f"no residual depends on {', '.join(map(repr, unseen[:4]))}"
            f"{' and others' if len(unseen) > 4 else ''}: nothing in the pictures changes with "
            "it. Leave it out of `trainable`, `freeze` it, or add pictures that show it."
        )
    if not np.all(np.isfinite(np.asarray(point.known))):
        raise ValueError(
            "the derivatives of the residuals are not finite at the start; "
            "`sg.check_gradients` tells of which leaf."
        )


def _place(method: _Method, sums: Costs) -> str:
    """Says where the first residual that is not finite lies."""
    residuals: Residuals = method.problem.residuals
    if isinstance(residuals, FunctionResiduals):
        return "of the function's"
    views, row = residuals.batches.views, int(sums.first_bad)
    frame, place = (np.asarray(x)[0] for x in views.locate(jnp.asarray([row])))
    names = views.names
    name = names[int(frame)] if names else f"picture {int(frame)}"
    return f"at column {place[0]}, row {place[1]} of {name!r}"
