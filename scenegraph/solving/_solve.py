import operator
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .._typing import IntLike, PyTree, RandomKey
from ..data import Annealing, Views
from ..fitting import choose_trainable
from ..integrators import AbstractIntegrator
from ..scene import check_leaves
from ._descent import FIRST_STEP, judge, LARGEST_STEP, propose, rounding, SMALLEST_STEP
from ._method import Covariance, Method, Point
from ._problem import make_problem, Options
from ._residuals import FunctionResiduals, Residuals
from ._result import SolveResult
from ._robust import AbstractRobustLoss, LeastSquares
from ._system import Costs, costs
from ._unknowns import as_unknowns, Unknowns


# Steps whose decrease of the cost is lost in rounding are taken on trust, so many times.
_TRUSTED = 3


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
    annealing: Annealing | None = None,
    pixels: IntLike | None = None,
    filters: str | Sequence[str] = (),
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
    - `annealing`: a schedule that begins with wide cones and blurred pictures, which leads from
      farther away; a step is an accepted iteration. For `Views`.
    - `pixels`: the number of pixels to compare, drawn at random once; by default all. Blurred
      pictures need only few. For `Views`.
    - `filters`: the path of a filter in the scene that the pictures have gone through, such as
      `Exposure`, `Vignette` or a `Chain` of them; or a path for each picture. Their leaves can be
      solved for. Filters must change each pixel by itself. For `Views`.

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
    guess = eqx.tree_at(lambda s: s["ball.shape.radius"], scene, jnp.asarray(0.4))
    result = sg.solve(guess, pictures, trainable=["ball.shape.radius"])
    print(result.uncertainty.standard_errors["ball.shape.radius"])
    ```
    """
    steps = _check_numbers(steps, tolerance, sigma, covariance)
    check_leaves(scene)
    chosen = choose_trainable(scene, trainable)
    unknowns, paths = as_unknowns(scene, chosen)
    options = Options(loss, integrator, key, annealing, pixels, filters)
    problem = make_problem(scene, views, unknowns, paths, options)
    method = Method(problem, covariance, paths, jax.random.key(0) if key is None else key)
    method.check_memory(unknowns)
    course = _Course(method, unknowns)
    _check_start(method, course.point, unknowns, trainable)
    reason = _iterate(course, steps, tolerance)
    found, history = course.unknowns, np.asarray(course.history)
    certain = None if covariance is None else method.at_step(steps).uncertainty(found, sigma)
    converged = reason.startswith("converged")
    return SolveResult(found.scene(), history, converged, reason, course.renders, certain)


def _check_numbers(steps: Any, tolerance: float, sigma: float | None, covariance: Any) -> int:
    """Refuses arguments that would fail late; returns the number of steps."""
    steps = operator.index(steps)
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


class _Course:
    """The course of an iteration: where it is, the linearisation there, and what it took."""

    def __init__(self, method: Method, unknowns: Unknowns):
        self.method, self.unknowns, self.clock = method.at_step(0), unknowns, 0
        self.point, self.renders = self.method.linearise(unknowns)
        self.history, self.size, self.trusted = [self.cost()], FIRST_STEP, 0

    def cost(self) -> float:
        """Returns the cost here."""
        return float(self.point.costs.cost)

    def advance(self, unknowns: Unknowns) -> None:
        """Linearises elsewhere, and at the next width of cones."""
        self.unknowns, self.clock = unknowns, self.clock + 1
        self.method = self.method.at_step(self.clock)
        self.point, renders = self.method.linearise(unknowns)
        self.renders += renders

    def step(self, tolerance: float) -> str:
        """Takes or rejects a step; returns why it was the last, or nothing."""
        problem, system = self.method.problem, self.point.system
        noise = rounding(self.cost(), system.gradient.dtype)
        size = jnp.asarray(self.size, system.gradient.dtype)
        final = problem.residuals.is_final()
        scaled, delta, promise = propose(problem, self.unknowns, system, size)
        small = float(promise) <= _least_promise(self.point.costs, self.unknowns, tolerance)
        # Below rounding, the cost no longer shows whether a step was good.
        lost = float(promise) <= noise
        if final and (small or (lost and self.trusted == _TRUSTED)):
            return f"converged in {len(self.history) - 1} iterations."
        moved, self.renders = self.unknowns.moved(delta), self.renders + 1
        cost = costs(problem, moved).cost
        # The damping falls if the cost does about as promised, and rises if it hardly does.
        judged = judge(problem, self.unknowns, system, scaled, cost, size)
        self.size, accepted = (x.item() for x in judged)
        if lost and np.isfinite(float(cost)):
            accepted, self.size, self.trusted = True, LARGEST_STEP, self.trusted + final
        if accepted:
            self.advance(moved)
        self.history.append(self.cost())
        return "stopped: no step lowers the cost." if self.size < SMALLEST_STEP else ""


def _iterate(course: _Course, steps: int, tolerance: float) -> str:
    """Takes steps until they no longer matter; returns why it ended."""
    for _ in range(steps):
        if reason := course.step(tolerance):
            return reason
    return f"stopped after {steps} iterations, before it converged."


def _least_promise(sums: Costs, unknowns: Unknowns, tolerance: float) -> float:
    """Returns the decrease of the cost that moves every direction by `tolerance` errors."""
    # |R d|^2 / 2 <= tolerance^2 s^2 / 2 with s^2 = 2 cost / (residuals - unknowns); what residuals
    # are rounded by, some eps each, promises as much as noise does: unknowns (8 eps)^2 / 2.
    count, eps = int(sums.number), float(jnp.finfo(unknowns.zeros().dtype).eps)
    variance = 2 * float(sums.cost) / max(count - unknowns.size(), 1)
    return 0.5 * max(tolerance**2 * variance, unknowns.size() * (8 * eps) ** 2)


def _check_start(method: Method, point: Point, unknowns: Unknowns, trainable: Any) -> None:
    """Refuses what cannot be solved, and says why."""
    sums, count = point.costs, unknowns.size()
    if int(sums.bad):
        raise ValueError(
            f"{int(sums.bad)} residuals are not finite at the start, the first "
            f"{_place(method, sums)}. Check the pictures and the scene there, or "
            "give these pixels the weight 0."
        )
    if int(sums.left_out):
        warnings.warn(
            f"{int(sums.left_out)} pixels are left out, for want of layers or samples; give "
            "`solve` an `integrator` with more.",
            stacklevel=4,
        )
    if int(sums.number) < count:
        raise ValueError(
            f"there are {int(sums.number)} residuals for {count} unknowns. Add pictures, or name "
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
            "`sg.check_gradients` shows of which leaf."
        )


def _place(method: Method, sums: Costs) -> str:
    """Says where the first residual that is not finite lies."""
    residuals: Residuals = method.problem.residuals
    if isinstance(residuals, FunctionResiduals):
        return "of the function's"
    views, row = residuals.batches.views, residuals.pixels[int(sums.first_bad)]
    frame, place = (np.asarray(x)[0] for x in views.locate(row[None]))
    names = views.names
    name = names[int(frame)] if names else f"picture {int(frame)}"
    return f"at column {place[0]}, row {place[1]} of {name!r}"
