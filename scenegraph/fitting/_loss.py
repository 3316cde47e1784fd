import dataclasses
import math
from collections.abc import Callable
from functools import partial
from typing import Any, Literal, NamedTuple, TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.sharding import Mesh

from .._typing import Array, Bool, Float, Int, PyTree, RandomKey, Scalar
from .._words import describe
from ..cameras import AbstractCamera
from ..data import Batch
from ..flat import FlatScene, flatten
from ..integrators import (
    AbstractIntegrator,
    choose_integrator,
    count_levels,
    count_steps,
    is_of_surfaces,
    is_packed,
    march_of,
    skips_empty_space,
    with_known_steps,
)
from ..losses import AbstractLoss, AbstractRayLoss, LossTerms, missed_point, MultiLevelLoss
from ..numerics import (
    AbstractModule,
    as_float_leaf,
    choose_block,
    safe_divide,
    sum_over_blocks,
    sum_over_runs,
)
from ..parallel import map_over_devices, pad_rows, sum_over_devices
from ..pixels import ScenePixels, stack_cameras
from ..rays import Radiance, Ray, widen
from ..rendering import choose_chunk, fold_keys, integrate_anyhow
from ..scene import find_camera, find_capture, mean_square_weight, open_scene, Scene
from ..transforms import AbstractTransform, AffineMap
from ._feed import traceable


# Samples of a block, measured for networks: with twice or half as many no step is faster, and most
# are slower.
_SAMPLES = 2**11
# Where occupancies guide samples, networks are small: a block of twice as many no longer fits into
# the cache, and takes three times as long.
_GUIDED_SAMPLES = 2**13
# Where rays share lists of samples, the length of a list; and the samples a ray, on average, of a
# full one: where rays ask for fewer, it is not filled. Of lists twice as long, half of the last
# one is empty; for half as long ones, kernel calls count.
_LIST, _SAMPLES_OF_RAY = 2**12, 8
# Surfaces are searched by many rays together.
_SURFACE_SAMPLES = 2**19


class RenderLoss(AbstractModule):
    """Renders a batch of rays and compares it with pixels: the `loss` that `step` takes for scenes.

    Where the loss is a sum over rays (an `AbstractRayLoss`), a batch is rendered, compared and
    differentiated a few rays at a time. That gives the same numbers sooner and in less memory;
    forward-mode derivatives (`jax.jvp`) need `chunk=None`.

    **Arguments:**

    - `loss`: the loss that compares radiance with pixels.
    - `integrator`: the integrator that renders the rays; `None` for the scene's.
    - `weight_decay`: the factor of the mean square of all network weights, added to the loss.
    - `jitter`: if true, samples are jittered and densities noisy.
    - `point_weight`: the factor of how far rays miss the points that their batch says they meet
      (`Batch.points`); the integrator is then one that returns intervals, such as `Guided`.
    - `chunk`: the number of rays that are worked on at a time; `None` for all.
    - `divisor`: a divisor of that number, where there is little memory.
    - `mesh`: the devices that share the rays, each with a sample budget of its own; `None` for one
      device. `fit` sets it.
    - `still`: the name of a `Capture` whose poses have no gradient, because they are solved for;
      `None` for none. `fit` sets it.
    """

    loss: AbstractLoss = MultiLevelLoss()
    integrator: AbstractIntegrator | None = None
    weight_decay: float = eqx.field(static=True, default=0.0)
    jitter: bool = eqx.field(static=True, default=True)
    point_weight: float = eqx.field(static=True, default=0.0)
    chunk: int | Literal["auto"] | None = eqx.field(static=True, default="auto")
    divisor: int = eqx.field(static=True, default=1)
    mesh: Mesh | None = eqx.field(static=True, default=None)
    still: str | None = eqx.field(static=True, default=None)

    def in_smaller_blocks(self, times: int) -> "RenderLoss | None":
        """Returns the same loss with fewer rays worked on at a time, which takes less memory.

        `None` if `chunk` is not `"auto"`, or the loss is not an `AbstractRayLoss`.
        """
        free = self.chunk == "auto" and isinstance(self.loss, AbstractRayLoss)
        return dataclasses.replace(self, divisor=times) if free else None

    @property
    def is_packed(self) -> bool:
        """Returns true if rays share lists of samples, of which there are as many as it takes."""
        alone = self.integrator is not None and is_packed(self.integrator)
        return alone and self.chunk == "auto" and isinstance(self.loss, AbstractRayLoss)

    def __call__(
        self, scene: Scene, terms: Any, batch: Batch, key: RandomKey
    ) -> tuple[Scalar, LossTerms]:
        integrator = choose_integrator(scene, self.integrator)
        scene = scene if self.still is None else _with_still_poses(scene, self.still)
        count = batch.lossmult.shape[0]
        # By the index in the whole batch, so that blocks and devices change nothing.
        keys = fold_keys(key, jnp.arange(count)) if self.jitter else None
        if self.chunk is None or not isinstance(self.loss, AbstractRayLoss):
            shared = integrator, flatten_pictures(scene, batch)
            levels, rays = map_over_devices(_render_batch, shared, (batch, keys), self.mesh)
            value, terms = self.loss(levels, batch, scene)
            value = value + self.point_weight * _mean_missed(levels[-1], rays, batch)
        else:
            decided = dataclasses.replace(self, integrator=integrator)
            # The scene is flattened once for all blocks.
            shared = decided, flatten_pictures(scene, batch), jnp.sum(batch.lossmult), count
            value, terms = sum_rays(shared, (batch, keys), self.mesh, _contribution)
        if self.weight_decay > 0:
            value = value + self.weight_decay * mean_square_weight(scene)
        if isinstance(batch.rays, ScenePixels):
            capture = find_capture(scene, batch.rays.paths[0])
            value = value if capture is None else value + capture.penalty()
        return value, jax.lax.stop_gradient(terms)


def _with_still_poses(scene: Scene, name: str) -> Scene:
    where: Any = lambda scene: scene.root.children[name].poses
    return eqx.tree_at(where, scene, jax.lax.stop_gradient(where(scene)))


# Called with what all rays share, and with some rays and which of them count; returns sums.
_Part: TypeAlias = Callable[[Any, Any], tuple[Scalar, PyTree]]


def sum_rays(shared: PyTree, rows: PyTree, mesh: Mesh | None, part: _Part) -> tuple[Scalar, PyTree]:
    """Adds up what the parts of a batch's rays contribute to sums over them, on all devices.

    `shared` begins with the `RenderLoss`, whose integrator is known, and the flattened scene.
    """
    if mesh is None:
        return _sum_here(shared, (*rows, None), part)
    rows, real = pad_rows(rows, mesh)
    return sum_over_devices(partial(_sum_here, part=part), shared, (*rows, real), mesh)


def _sum_here(shared: PyTree, rows: PyTree, part: _Part) -> tuple[Scalar, PyTree]:
    """Adds up the contributions of one device's rays, a few at a time."""
    loss, count = shared[0], rows[0].lossmult.shape[0]
    if loss.is_packed:
        return _sum_packed(shared, rows, part)
    samples = _GUIDED_SAMPLES if skips_empty_space(loss.integrator) else _SAMPLES
    samples = _SURFACE_SAMPLES if is_of_surfaces(loss.integrator) else samples
    most = choose_chunk(loss.chunk, count, loss.integrator, samples_on_cpu=samples)
    most = max(1, most // loss.divisor)
    # Blocks of like size: in a small last one, few rays would share a budget.
    size = -(-count // -(-count // most))
    return sum_over_blocks(part, shared, rows, size)


def _sum_packed(shared: PyTree, rows: PyTree, part: _Part) -> tuple[Scalar, PyTree]:
    """Adds up the contributions of rays in runs that fill a list of samples each."""
    (loss, flattened, *_), (batch, keys, _) = shared, rows
    count = batch.lossmult.shape[0]
    samples = choose_block(_LIST) // loss.divisor
    size = min(count, max(1, samples // _SAMPLES_OF_RAY))
    # No ray asks for more than the largest budget there is.
    longest = loss.integrator.with_budget(math.inf).budget
    integrator = loss.integrator.with_budget(max(_SAMPLES_OF_RAY, longest / size))
    rays = _rays_of(batch, flattened[1])
    # Looked up once, for the lengths of the runs and for these.
    words = march_of(integrator).find_steps(flattened[0], jax.lax.stop_gradient(rays), keys)
    costs, most = count_steps(words), integrator.budget * size
    shared = dataclasses.replace(loss, integrator=integrator), *shared[1:]
    return sum_over_runs(partial(_run, part), shared, (*rows, words), costs, most=most, size=size)


def _run(
    part: _Part, shared: PyTree, rows: PyTree, taken: Bool[Array, " rays"]
) -> tuple[Scalar, PyTree]:
    """Computes the contribution of a run of rays whose occupied steps are known."""
    (loss, *others), (batch, keys, real, words) = shared, rows
    loss = dataclasses.replace(loss, integrator=with_known_steps(loss.integrator, words))
    return part((loss, *others), (batch, keys, _both(real, taken)))


def _both(real: Bool[Array, " rays"] | None, taken: Bool[Array, " rays"]) -> Bool[Array, " rays"]:
    return taken if real is None else real & taken


class _Pictures(NamedTuple):
    """Cameras of a batch that are nodes of the scene, and how their pictures' colours differ."""

    cameras: AbstractCamera
    colors: Float[Array, "frames 3 4"] | None
    codes: Float[Array, "frames codes"] | None


_Flattened = tuple[FlatScene, _Pictures | None]


def flatten_pictures(scene: Scene, batch: Batch) -> _Flattened:
    """Flattens a scene, with the cameras and maps of colours of the pictures of a batch."""
    pixels = batch.rays
    if not isinstance(pixels, ScenePixels):
        return flatten(scene), None
    capture = find_capture(scene, pixels.paths[0])
    colors, codes = (None, None) if capture is None else (capture.color_maps(), capture.codes())
    return flatten(scene), _Pictures(scene_cameras(pixels, scene), colors, codes)


def _render_batch(
    shared: tuple[AbstractIntegrator, _Flattened], rows: PyTree
) -> tuple[tuple[Radiance, ...], Ray]:
    (integrator, (scene, pictures)), (batch, keys) = shared, rows
    rays = _rays_of(batch, pictures)
    return render_pictures((integrator, scene, pictures), rays, batch, keys), rays


def render_pictures(
    shared: tuple[AbstractIntegrator, FlatScene, _Pictures | None],
    rays: Ray,
    batch: Batch,
    keys: Array | None,
) -> tuple[Radiance, ...]:
    """Renders rays of a batch, in the colours of its pictures."""
    integrator, scene, pictures = shared
    pixels: Any = batch.rays
    if pictures is not None and pictures.codes is not None:
        rays = dataclasses.replace(rays, appearance=pictures.codes[pixels.frame])
    levels = integrate_anyhow(scene, rays, integrator, keys, batch.background)
    if pictures is None or pictures.colors is None:
        return levels
    maps = pictures.colors[pixels.frame]
    return tuple(dataclasses.replace(x, rgb=_map_colors(maps, x.rgb)) for x in levels)


def _rays_of(batch: Batch, pictures: _Pictures | None) -> Ray:
    rays: Any = batch.rays  # pixels, if there are pictures
    return rays if pictures is None else pixel_cones(rays, pictures.cameras)


def _map_colors(maps: Float[Array, "rays 3 4"], rgb: Float[Array, "rays 3"]) -> Array:
    # M c + b of every ray, with the map [M b] of its picture
    return jnp.sum(maps[..., :3] * rgb[:, None], axis=-1) + maps[..., 3]


def scene_cameras(pixels: ScenePixels, scene: Scene) -> AbstractCamera:
    """Stacks the cameras, in world coordinates, at the paths that pixels name, or of a `Capture`.

    Raises `ValueError` for a path without a camera, or cameras of several kinds or sizes.
    """
    opened = open_scene(scene)
    capture = find_capture(opened, pixels.paths[0])
    if capture is None:
        stacked = stack_cameras([find_camera(opened, path) for path in pixels.paths])
    else:
        stacked = capture.corrected()
    # Exponentials of poses are computed once a camera, not once a pixel.
    return jax.vmap(_with_matrices)(stacked)


def _with_matrices(camera: AbstractCamera) -> AbstractCamera:
    """Puts matrices in the places of transforms."""
    is_transform = lambda x: isinstance(x, AbstractTransform)
    as_matrix = lambda x: AffineMap(x.linear(), x.offset(), x.is_similarity)
    change = lambda x: as_matrix(x) if is_transform(x) else x
    return jax.tree.map(change, camera, is_leaf=is_transform)


def pixel_cones(pixels: ScenePixels, cameras: AbstractCamera) -> Ray:
    """Returns the rays of pixels of stacked cameras, which may be what is fitted."""

    def ray(frame: Int[Array, ""], place: Float[Array, "2"]) -> Ray:
        return jax.tree.map(lambda x: x[frame], cameras).ray(place)

    rays = jax.vmap(ray)(pixels.frame, pixels.place)
    return jax.vmap(widen)(rays, pixels.width)


def _contribution(shared: PyTree, rows: PyTree) -> tuple[Scalar, LossTerms]:
    """Computes the contribution of some rays to the mean over all of them."""
    loss, flattened, weight, count = shared
    (batch, keys, real), size = rows, rows[0].lossmult.shape[0]
    levels, rays = _render_batch((loss.integrator, flattened), (batch, keys))
    if real is not None:
        levels, batch = _only(real, levels, batch)
    value, terms = loss.loss(levels, batch, None)  # Losses of rays see no scene.
    value = value + loss.point_weight * _mean_missed(levels[-1], rays, batch)
    # (sum of the weights of these rays) / (sum of the weights of all rays)
    weighted = safe_divide(jnp.sum(batch.lossmult), weight)
    once = size if real is None else jnp.sum(real)
    left_out = terms.left_out if real is None else terms.left_out - (size - once)
    return weighted * value, LossTerms(
        weighted * terms.losses, once / count * terms.mse, left_out, size / count * terms.requested
    )


def _mean_missed(level: Radiance, rays: Ray, batch: Batch) -> Scalar:
    """Returns the mean of `missed_point` over all rays of a batch; 0 for those without a point."""
    if batch.points is None:
        return jnp.zeros(())
    if level.weights.shape[-1] < 2:  # One interval a ray stands for integrators without any.
        raise ValueError(
            "points that rays meet need an integrator with intervals, such as `Guided`; set "
            "`point_weight` to 0."
        )
    known = jnp.all(jnp.isfinite(batch.points), axis=1)
    points = jnp.where(known[:, None], batch.points, rays.origin + rays.direction)
    # The nearest to the point of all o + t d: t = (p - o) . d / (d . d)
    along = jnp.sum((points - rays.origin) * rays.direction, axis=1)
    t = along / jnp.sum(rays.direction**2, axis=1)
    missed = jax.vmap(missed_point)(level.edges, level.weights, t)
    counted = batch.lossmult * known
    return safe_divide(jnp.sum(counted * missed), jnp.sum(batch.lossmult))


def _only(
    real: Bool[Array, " rays"], levels: tuple[Radiance, ...], batch: Batch
) -> tuple[tuple[Radiance, ...], Batch]:
    """Leaves out rays that only fill up a device's part: incomplete, without samples or weight."""
    last = levels[-1]
    missing = jnp.zeros(real.shape, jnp.int32) if last.overflow is None else last.overflow
    requested = None if last.requested is None else jnp.where(real, last.requested, 0)
    last = dataclasses.replace(last, overflow=jnp.where(real, missing, 1), requested=requested)
    return (*levels[:-1], last), dataclasses.replace(batch, lossmult=real * batch.lossmult)


def empty_extra(loss, model: PyTree, batches, key: RandomKey) -> PyTree:
    """Returns zeros of the form of the loss's second result, for a first state."""
    if isinstance(loss, RenderLoss) and isinstance(loss.loss, AbstractRayLoss):
        # What is known need not be traced, which takes about as long as tracing a step.
        levels = count_levels(choose_integrator(model, loss.integrator))
        if levels is not None:
            zeros, zero = as_float_leaf([0.0] * levels), as_float_leaf(0.0)
            return LossTerms(zeros, zeros, zero, zero)

    def trial(model: PyTree, batches, key: RandomKey) -> PyTree:
        result = loss(model, None, batches.batch(0, 0), key)
        if not (isinstance(result, tuple) and len(result) == 2):
            raise TypeError(f"`loss` must return `(value, state)`; it returns {describe(result)}.")
        return result[1]

    shapes = eqx.filter_eval_shape(trial, model, traceable(batches, 0), key)
    return jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), shapes)
