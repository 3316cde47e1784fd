"""Layers of surfaces: ray by ray without derivatives, layer by layer with them."""

from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp

from .._typing import Array, Bool, Float, PyTree
from ..flat import FlatScene
from ..rays import Layers, Ray
from ..rows import call_late
from ._along_ray import layers_of_rays
from ._details import no_details
from ._irradiance import mirrors
from ._listed import find_rows, shade_rows
from ._ray_size import count_samples
from ._secondary import secondary_light, shows_surroundings
from ._shadows import are_meshes, Shading


# Rays with more shadow rays from a hit are computed layer by layer.
_FEW_SAMPLES = 16


def find_and_shade(scene: FlatScene, rays: Ray, how: Shading) -> Layers:
    """Computes the nearest layers of rays."""
    if not goes_ray_by_ray(scene):
        return listed_layers(scene, rays, how)
    compute, shapes = partial(_ray_by_ray, how=how), _shapes_of_layers(rays.near, how)
    return call_late(compute, partial(_push, how=how), shapes, scene, rays)


def goes_ray_by_ray(scene: FlatScene) -> bool:
    """Returns true if what a ray shows of a scene is one function of it."""
    if scene.masks or shows_surroundings(scene) or any(map(mirrors, scene.lights)):
        return False
    if scene.triangles is None and scene.tree is None:
        return False
    return count_samples(scene) <= _FEW_SAMPLES


def _ray_by_ray(scene: FlatScene, rays: Ray, how: Shading) -> Layers:
    # Without derivatives, nothing is seen behind what is opaque, whether or not it stays so.
    opaque = eqx.tree_at(lambda flat: flat.cuts, scene, jnp.ones_like(scene.cuts))
    return layers_of_rays(opaque, rays, how)


def _push(primals: tuple, tangents: tuple, how: Shading) -> tuple[Layers, Layers]:
    # What has derivatives is computed layer by layer, and not ray by ray: its program has no loop.
    (scene, rays), (change, _) = primals, tangents
    scene = eqx.tree_at(lambda flat: flat.cuts, scene, _cuts(scene, change))
    compute = lambda scene, rays: listed_layers(scene, rays, how)
    return eqx.filter_jvp(compute, (scene, rays), tangents)


def _shapes_of_layers(like: Float[Array, " rays"], how: Shading) -> Layers:
    """Returns the shapes of the layers of rays."""

    def zeros() -> Layers:
        table = lambda *shape: jnp.zeros((how.layers, *shape), like.dtype)
        details = no_details(how.fields, how.layers, like.dtype)
        return Layers(table(), table(), table(3), jnp.zeros((), jnp.int32), **details)

    of_rays = lambda x: jax.ShapeDtypeStruct((*like.shape, *x.shape), x.dtype)
    return jax.tree.map(of_rays, jax.eval_shape(zeros))


def _cuts(scene: FlatScene, change: PyTree) -> Bool[Array, " surfaces"]:
    """Returns which surfaces hide what is behind them: their opacity is fixed, or has no tangent.

    A tangent that is zero is `None`.
    """
    cuts = scene.cuts
    for stack, own in zip(scene.occluders, change.occluders, strict=True):
        if not jax.tree.leaves((own.members.node.opacity, own.shared.node.opacity)):
            cuts = cuts.at[stack.members.number].set(True)
    if scene.triangles is None or change.triangles.opacity is not None or scene.masks:
        return cuts
    return cuts | are_meshes(scene)


def listed_layers(scene: FlatScene, rays: Ray, how: Shading) -> Layers:
    """Finds the nearest layers on rays, and computes just these.

    The search takes no derivatives, and says which surfaces are the layers of which ray. What they
    reflect, or let shine through, is found and computed in the same way.
    """
    rows = find_rows(scene, rays, how)
    layers = shade_rows(scene, rays, rows, how)
    if not shows_surroundings(scene):
        return layers
    rgb, missed = secondary_light(scene, rays, rows[0], how)
    return eqx.tree_at(
        lambda x: (x.rgb, x.overflow), layers, (layers.rgb + rgb, layers.overflow + missed)
    )
