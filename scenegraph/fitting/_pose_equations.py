"""Gauss and Newton's equations of the poses of pictures, each by itself, in a scene that stays."""

import dataclasses
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from .._typing import Array, Float, PyTree, Scalar
from ..cameras import AbstractCamera
from ..data import Batch
from ..integrators import choose_integrator
from ..numerics import AbstractModule
from ..pixels import ScenePixels
from ..rays import Radiance, Ray
from ..scene import Scene
from ._loss import (
    flatten_pictures,
    pixel_cones,
    render_pictures,
    RenderLoss,
    scene_cameras,
    sum_rays,
)


class PoseEquations(AbstractModule):
    """Sums over the rays of each picture: J^T W J and J^T W r."""

    curvature: Float[Array, "frames 6 6"]
    gradient: Float[Array, "frames 6"]


@eqx.filter_jit
def pose_equations(loss: RenderLoss, scene: Scene, batch: Batch) -> PoseEquations:
    """Computes the equations of a batch of pixels, in the numbers of `Capture.poses`.

    A residual is the error of a ray's brightness: one reverse derivative of each ray is its row of
    J, and colours say little more of where an edge is.
    """
    whole = dataclasses.replace(loss, integrator=choose_integrator(scene, loss.integrator))
    shared = whole, flatten_pictures(scene, batch), _camera_tangents(scene, batch)
    return sum_rays(shared, (batch, None), loss.mesh, _part)[1]


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

    def brightness(rays: Ray) -> tuple[Array, Radiance]:
        seen = render_pictures((loss.integrator, scene, pictures), rays, batch, None)[-1]
        return jnp.mean(seen.rgb, axis=1), seen

    values, pullback, seen = jax.vjp(brightness, rays, has_aux=True)
    (slopes,) = pullback(jnp.ones_like(values))
    jacobian = _contract(slopes, tangents)
    residuals = values - jnp.mean(batch.rgb, axis=1)
    counts = batch.lossmult if real is None else batch.lossmult * real
    counts = counts if seen.overflow is None else counts * (seen.overflow == 0)
    frames = jax.tree.leaves(turns)[0].shape[1]
    total = partial(jax.ops.segment_sum, segment_ids=batch.rays.frame, num_segments=frames)
    # sum_i w_i J_i^T J_i and sum_i w_i J_i^T r_i, picture by picture
    weighted = counts[:, None] * jacobian
    curvature = total(weighted[:, :, None] * jacobian[:, None])
    return jnp.zeros(()), PoseEquations(curvature, total(weighted * residuals[:, None]))


def _contract(slopes: Ray, tangents: Ray) -> Float[Array, "rays 6"]:
    """Returns d value / d ray . d ray / d pose, summed over all numbers of a ray."""

    def one(slope: Array, tangent: Array) -> Array:
        return jnp.sum((slope * tangent).reshape(*tangent.shape[:2], -1), axis=-1)

    return sum(jax.tree.leaves(jax.tree.map(one, slopes, tangents))).T


def _with_tangents(pixels: ScenePixels, cameras: AbstractCamera, turns: PyTree) -> tuple[Ray, Ray]:
    """Returns rays, and their derivatives by the six numbers of their poses, stacked."""
    free, fixed = eqx.partition(cameras, eqx.is_inexact_array)
    rays, push = jax.linearize(lambda free: pixel_cones(pixels, eqx.combine(free, fixed)), free)
    return rays, jax.vmap(push)(turns)
