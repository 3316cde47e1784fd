"""Poses of pictures, solved for against the scene while it is fitted."""

import dataclasses
import math
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .._typing import Array, Float, PyTree, RandomKey, Scalar
from .._words import describe
from ..cameras import AbstractCamera
from ..data import AbstractPixelChoice, Batch, RayBatches
from ..integrators import AbstractIntegrator, choose_integrator, Guided, OccupancyMarch
from ..numerics import AbstractModule
from ..parallel import Layout
from ..pixels import AllImages, ScenePixels
from ..rays import Radiance, Ray
from ..scene import Capture, Scene
from ._feed import reads_file
from ._flat import Flat, flatten
from ._loss import (
    flatten_pictures,
    pixel_cones,
    render_pictures,
    RenderLoss,
    scene_cameras,
    sum_rays,
)


# Polishes begin at this part of a fit; from a later one on they have twice the rays.
BEGIN, _CLOSE = 0.4, 0.9
# There are so many in all of a fit, if the steps between two of them have at least so many times
# their rays.
_NUMBER, _SPACING = 30, 1.2
# A step without a gradient of poses is compiled if it will be taken so many times.
_WORTH = 400
# Marquardt's damping, the least of it as a share of the mean diagonal, and the longest step, in
# pixels.
_DAMPING, _LEAST, _LONGEST = 1e-2, 1e-4, 4.0
# The scene follows the poses, so that they go farther than to where it is; not near the end.
_RELAXATION = 1.4
# Steps along rays are so many times as long as those of the fit.
_COARSER = 2


class PosePolish(AbstractModule):
    """Steps of Gauss and Newton by which the poses of a `Capture` are solved for during a fit.

    Gradient descent sees a few rays of a picture at a time, and is slow where a turn of the camera
    is nearly made up for by a shift. Every so many steps, from two fifths of the fit on, each
    picture's six numbers are therefore solved for with many of its rays, while the scene stays.
    From then on they have no gradient, where enough steps are left for that to pay; the optimiser
    should leave them alone.

    **Arguments:**

    - `name`: the name of the `Capture` in the root of the scene; static.
    - `rays`: the number of rays of a picture, on average; static.
    - `choice`: the rule by which pixels are drawn; those at edges say the most (`edge_pixels`).

    Example:

    ```python
    camera = sg.PerspectiveCamera.look_at([0.0, -3.0, 1.0], [0.0] * 3, [0.0, 0.0, 1.0], 0.7, 8, 8)
    blob = sg.Volume(sg.fields.GaussianBlob([0.0, 0.0, 0.0], 0.5, 4.0))
    scene = sg.Scene(sg.Group(cloud=blob))
    scene, views = sg.fitting.with_corrections(scene, sg.views(camera, sg.render(scene, camera)))
    rule, key = optax.adam(1e-2), jax.random.key(0)
    polish = sg.fitting.PosePolish(rays=16)
    fitted = sg.fit(scene, views, optimizer=rule, steps=2, key=key, polish=polish)
    ```
    """

    name: str = eqx.field(static=True, default="capture")
    rays: int = eqx.field(static=True, default=1024)
    choice: AbstractPixelChoice = AllImages()

    def __check_init__(self):
        if self.rays < 1:
            raise ValueError(f"a `PosePolish` needs at least one ray a picture; got {self.rays}.")


class PoseEquations(AbstractModule):
    """Sums over the rays of each picture: J^T W J and J^T W r."""

    curvature: Float[Array, "frames 6 6"]
    gradient: Float[Array, "frames 6"]


class Polisher:
    """Polishes the poses of a fit whenever that is due."""

    def __init__(self, polish: PosePolish, scene: Any, batches: Any, loss: Any, layout: Layout):
        _check(polish, scene, batches, loss)
        self._polish, self._layout = polish, layout
        self._batches = dataclasses.replace(batches, choice=layout.copy(polish.choice), sighted=0)
        # Of one polish with all its rays.
        self._count = max(1, round(polish.rays * batches.views.frames / batches.size))
        self._last = -math.inf  # the step of the polish before

    def skip(self, number: int, horizon: float) -> None:
        """Takes note that a fit begins after so many steps."""
        begin, period = self._plan(horizon)
        if number > 0 and number >= begin:
            self._last = number - (number - begin) % period

    def stills(self, loss: Any, number: int, horizon: float) -> RenderLoss | None:
        """Returns the loss without a gradient of the poses, if that is worth its compilation now.

        From the first polish on the gradient leaves poses alone, and steps are faster without it.
        """
        begun = number >= self._plan(horizon)[0] and loss.still is None
        if not begun or horizon - number < _WORTH:
            return None
        return dataclasses.replace(loss, still=self._polish.name)

    def is_due(self, number: int, horizon: float, last: bool) -> bool:
        """Returns true if poses are to be polished after so many steps.

        `last` is true for the last of a number of steps that is known. A horizon that moves never
        makes several due at once.
        """
        begin, period = self._plan(horizon)
        if number == 0 or number < begin:
            return False
        return last or (number - self._last >= period and horizon - number >= period)

    def __call__(self, state: Flat, number: int, horizon: float, loss: RenderLoss) -> Flat:
        """Returns the state after `number` steps, polished."""
        self._last = number
        close = number >= _CLOSE * horizon
        before: Any = state.tree
        equations = sum_equations(
            self._batches,
            loss,
            before.model,
            self._layout,
            key=before.keys.batches,
            number=number,
            count=self._count * (2 if close else 1),
        )
        change = (1.0 if close else _RELAXATION) * solve_poses(equations)
        poses = before.model.root.children[self._polish.name].poses + jnp.asarray(change)
        where = lambda scene: scene.root.children[self._polish.name].poses
        model = eqx.tree_at(where, before.model, poses)
        return flatten(self._layout.place(dataclasses.replace(before, model=model)))

    def _plan(self, horizon: float) -> tuple[int, int]:
        """Returns after how many steps the first polish is due, and how many lie between two."""
        period = max(1, round(max(horizon / _NUMBER, _SPACING * self._count)))
        return round(BEGIN * horizon), period


def sum_equations(
    batches: RayBatches,
    loss: RenderLoss,
    scene: Scene,
    layout: Layout,
    *,
    key: RandomKey,
    number: int,
    count: int,
) -> PoseEquations:
    """Sums up the equations of so many batches of step `number`, a pure function of key and step.

    All is where `layout` has put it.
    """
    seeds = jax.random.bits(jax.random.fold_in(key, number), (count,), "uint32")
    loss = dataclasses.replace(loss, jitter=False)
    total = None
    for seed in np.asarray(seeds):
        one = pose_equations(loss, scene, layout.copy(_batch(batches, seed, number)))
        total = one if total is None else jax.tree.map(jnp.add, total, one)
    assert total is not None
    return total


def _batch(batches: RayBatches, seed: np.uint32, number: int) -> Batch:
    if reads_file(batches):
        return batches.batch(int(seed), number)
    return _make_batch(batches, jnp.asarray(seed), jnp.asarray(number))


@eqx.filter_jit
def _make_batch(batches: RayBatches, seed: Array, step: Array) -> Batch:
    return batches.batch(seed, step)


@eqx.filter_jit
def pose_equations(loss: RenderLoss, scene: Scene, batch: Batch) -> PoseEquations:
    """Computes the equations of a batch of pixels, in the numbers of `Capture.poses`.

    A residual is the error of a ray's brightness: one reverse derivative of each ray is its row of
    J, and colours say little more of where an edge is.
    """
    whole = dataclasses.replace(loss, integrator=_quick(choose_integrator(scene, loss.integrator)))
    shared = whole, flatten_pictures(scene, batch), _camera_tangents(scene, batch)
    return sum_rays(shared, (batch, None), loss.mesh, _part)[1]


def _quick(integrator: AbstractIntegrator) -> AbstractIntegrator:
    """Returns the integrator with which equations are summed up."""
    if isinstance(integrator, Guided):  # Its scaled gradients are no derivatives of the picture.
        return dataclasses.replace(integrator, scale_gradients=False)
    if isinstance(integrator, OccupancyMarch):
        candidates = max(2, integrator.candidates // _COARSER)
        budget = min(integrator.budget, candidates)
        step = _COARSER * integrator.step
        return dataclasses.replace(integrator, candidates=candidates, budget=budget, step=step)
    return integrator


def _camera_tangents(scene: Scene, batch: Batch) -> PyTree:
    """Returns the derivatives of all cameras by the six numbers of their poses, stacked."""
    pixels: Any = batch.rays
    name = pixels.paths[0]

    def cameras(poses: Array) -> PyTree:
        moved = eqx.tree_at(lambda s: s.root.children[name].poses, scene, poses)
        return eqx.filter(scene_cameras(pixels, moved), eqx.is_inexact_array)

    root: Any = scene.root
    poses = root.children[name].poses
    # Cameras are independent of each other: one tangent serves all.
    seeds = jnp.broadcast_to(jnp.eye(6, dtype=poses.dtype)[:, None], (6, *poses.shape))
    return jax.vmap(lambda seed: jax.jvp(cameras, (poses,), (seed,))[1])(seeds)


def _part(shared: PyTree, rows: PyTree) -> tuple[Scalar, PoseEquations]:
    """Sums up the equations of some rays."""
    (loss, (scene, pictures), turns), (batch, _, real) = shared, rows
    rays, tangents = _with_tangents(batch.rays, pictures.cameras, turns)

    def brightness(line: tuple[Array, Array]) -> tuple[Array, Radiance]:
        moved = eqx.tree_at(_line, rays, line)
        seen = render_pictures((loss.integrator, scene, pictures), moved, batch, None)[-1]
        return jnp.mean(seen.rgb, axis=1), seen

    values, pullback, seen = jax.vjp(brightness, _line(rays), has_aux=True)
    # J_i = d brightness_i / d ray_i . d ray_i / d pose: no ray depends on another, so that one
    # reverse derivative of their sum has all of the first factors.
    (slopes,) = pullback(jnp.ones_like(values))
    jacobian = _contract(slopes, _line(tangents))
    residuals = values - jnp.mean(batch.rgb, axis=1)
    counts = batch.lossmult if real is None else batch.lossmult * real
    counts = counts if seen.overflow is None else counts * (seen.overflow == 0)
    frames = jax.tree.leaves(turns)[0].shape[1]
    total = partial(jax.ops.segment_sum, segment_ids=batch.rays.frame, num_segments=frames)
    # sum_i w_i J_i^T J_i and sum_i w_i J_i^T r_i, picture by picture
    weighted = counts[:, None] * jacobian
    curvature = total(weighted[:, :, None] * jacobian[:, None])
    return jnp.zeros(()), PoseEquations(curvature, total(weighted * residuals[:, None]))


def _line(ray: Ray) -> tuple[Array, Array]:
    return ray.origin, ray.direction


def _contract(slopes: PyTree, tangents: PyTree) -> Float[Array, "rays 6"]:
    """Returns d value / d ray . d ray / d pose, summed over all numbers of a ray."""

    def one(slope: Array, tangent: Array) -> Array:
        return jnp.sum((slope * tangent).reshape(*tangent.shape[:2], -1), axis=-1)

    return jnp.stack(jax.tree.leaves(jax.tree.map(one, slopes, tangents))).sum(axis=0).T


def _with_tangents(pixels: ScenePixels, cameras: AbstractCamera, turns: PyTree) -> tuple[Ray, Ray]:
    """Returns rays, and their derivatives by the six numbers of their poses, stacked."""
    free, fixed = eqx.partition(cameras, eqx.is_inexact_array)
    rays, push = jax.linearize(lambda free: pixel_cones(pixels, eqx.combine(free, fixed)), free)
    return rays, jax.vmap(push)(turns)


def solve_poses(
    equations: PoseEquations, *, least: float = _LEAST, longest: float = _LONGEST
) -> Float[np.ndarray, "frames 6"]:
    """Returns the damped steps of poses; none for pictures whose equations are not finite.

    `least` is the least damping, as a share of the mean diagonal, and `longest` is in pixels.
    """
    curvature = np.asarray(equations.curvature, np.float64)
    gradient = np.asarray(equations.gradient, np.float64)
    both = np.concatenate([curvature, gradient[:, None]], axis=1)
    finite = np.asarray(np.isfinite(both).all(axis=(1, 2)))
    curvature = np.where(finite[:, None, None], curvature, 0.0)
    # (A + lambda diag(A) + mu I) d = -g, with mu in parts of the mean diagonal
    diagonal = np.einsum("fii->fi", curvature)
    even = least * diagonal.mean(axis=1, keepdims=True)
    damping = _DAMPING * diagonal + np.maximum(even, 1e-12)
    matrix = curvature + damping[:, :, None] * np.eye(6)
    steps = -np.linalg.solve(matrix, np.where(finite[:, None], gradient, 0.0)[..., None])[..., 0]
    lengths = np.linalg.norm(steps, axis=1, keepdims=True)
    # Unit steps move what a picture shows by about a pixel each.
    shares = np.minimum(1.0, longest / np.maximum(lengths, 1e-12))
    return (shares * steps).astype(np.float32)


def _check(polish: PosePolish, scene: Any, batches: Any, loss: Any) -> None:
    """Refuses what has no poses to polish, or renders no pictures."""
    if not isinstance(loss, RenderLoss):
        raise TypeError(
            "`polish` needs a `loss` that compares pictures, such as `MultiLevelLoss()`; "
            f"got {describe(loss)}."
        )
    if not isinstance(batches, RayBatches) or not isinstance(scene, Scene):
        raise TypeError("`polish` needs a scene and its pictures: `Views`, or `RayBatches`.")
    root: Any = scene.root
    capture = getattr(root, "children", {}).get(polish.name)
    if not isinstance(capture, Capture) or capture.poses is None:
        raise ValueError(
            f"`polish` needs a Capture {polish.name!r} with poses in the root of the scene; "
            "`with_corrections` makes one."
        )
