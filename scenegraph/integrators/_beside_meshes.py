"""Rays beside all meshes: known by cones about bundles, they need no search over faces.

Much of a picture of a mesh shows other things, such as a floor and the sky. Where neither rays nor
their shadow rays may touch a mesh, the scene is as good as one without meshes.
"""

from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp

from .._typing import Array, Bool, Int
from ..flat import FlatScene, Instance, intersect, part_alphas
from ..numerics import safe_norm
from ..rays import Hit, Ray
from ..transforms import Ball
from ..visibility import BUNDLE, list_along_rays
from ._base import AbstractIntegrator
from ._integrator import Integrator, is_of_surfaces
from ._irradiance import sample_lights
from ._ray_size import count_shadow_rays
from ._surfaces import Surfaces


# Shadow rays of a ray: with more of them, to find out takes as long as to search.
_MOST = 8

# Shadow rays of a ray, from all that it may hit to all lights, and whether they are there.
ShadowRays = tuple[Ray, Bool[Array, "*rays shadows"]]


def may_pass_meshes(integrator: AbstractIntegrator, scene: FlatScene) -> bool:
    """Returns true if it pays to find the rays that pass beside all meshes of a scene."""
    if scene.triangles is None or not is_of_surfaces(integrator):
        return False
    surfaces, rest = _surfaces_of(integrator), without_meshes(scene)
    # Of few things alone, to count shadow rays takes no time.
    if surfaces.lists is not None or not surfaces.asks_all(rest):
        return False
    return not surfaces.shadows or count_shadow_rays(rest) <= _MOST


def _surfaces_of(integrator: AbstractIntegrator) -> Surfaces:
    assert isinstance(integrator, Integrator) and integrator.surfaces is not None
    return integrator.surfaces


def without_meshes(scene: FlatScene) -> FlatScene:
    """Returns the surfaces that are no meshes, and the lights."""
    return eqx.tree_at(lambda flat: (flat.triangles, flat.masks), scene, (None, ()))


def shadow_rays_of(scene: FlatScene, ray: Ray, integrator: AbstractIntegrator) -> ShadowRays | None:
    """Returns the shadow rays of all that a ray may hit, `shadows`; `None` if nothing has any."""
    if not (scene.surfaces and scene.lights and _surfaces_of(integrator).shadows):
        return None
    flat = lambda x: x.reshape(-1, *x.shape[2:])
    joined = lambda parts: jax.tree.map(lambda *xs: jnp.concatenate(xs), *parts)
    meet = partial(_meet, ray=ray)
    hits, alphas = joined(jax.tree.map(flat, stack.map(meet)) for stack in scene.surfaces)

    to_lights = lambda hit: joined(samples.rays for samples in sample_lights(scene, hit))
    rays = jax.vmap(to_lights)(hits)
    there = jnp.broadcast_to(alphas[:, None] > 0, rays.near.shape)
    return jax.lax.stop_gradient(jax.tree.map(flat, (rays, there)))


def _meet(instance: Instance, ray: Ray) -> tuple[Hit, Array]:
    """Returns a surface's hits on a ray, and their opacities."""
    hits = intersect(instance, ray)
    return hits, part_alphas(hits)


def count_touched(
    scene: FlatScene, rays: Ray, shadows: ShadowRays | None
) -> Int[Array, " bundles"]:
    """Counts the clusters of faces that bundles of rays, and their shadow rays, may touch."""
    assert scene.triangles is not None
    clusters = scene.triangles.tree.clusters
    balls = jax.lax.stop_gradient(Ball(clusters.center, safe_norm(clusters.half)))
    count = lambda *rays: list_along_rays(balls, *jax.lax.stop_gradient(rays), BUNDLE).lengths
    total = count(rays, jnp.ones(rays.near.shape, bool))
    # One shadow ray of every ray after the other: these go the same way.
    for number in range(0 if shadows is None else shadows[1].shape[1]):
        total += count(*jax.tree.map(lambda x: x[:, number], shadows))  # noqa: B023
    return total
