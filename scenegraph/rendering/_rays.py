import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Key

from .._typing import Array, Float, RandomKey
from ..compositing import over
from ..integrators import AbstractIntegrator, choose_integrator, complete
from ..numerics import unfreeze
from ..rays import Radiance, Ray
from ..scene import Detailed, linearise, Scene


def render_rays(
    scene: Scene,
    rays: Ray,
    integrator: AbstractIntegrator | None = None,
    *,
    key: RandomKey | None = None,
    background: Float[Array, "rays 3"] | None = None,
) -> tuple[Radiance, ...]:
    """What rays see, level by level, with weights and intervals: what losses compare.

    **Arguments:**

    - `scene`: what is looked at.
    - `rays`: with one leading axis, in the world.
    - `integrator`: how; by default as the scene says.
    - `key`: for jitter and noise, folded by the ray's index; `None` is deterministic. Keyword
      only argument.
    - `background`: a colour for every ray instead of the scene's background. Keyword only
      argument.

    **Returns:**

    The radiance of every level, coarse to fine, over the background.
    """
    keys = None if key is None else fold_keys(key, jnp.arange(rays.near.shape[0]))
    return _integrate(scene, rays, integrator, keys, background)


def fold_keys(key: RandomKey, indices: Array) -> Key[Array, " rays"]:
    """A key for every ray that depends on nothing but its index.

    **Arguments:**

    - `key`: of the picture or batch.
    - `indices`: of the rays.

    **Returns:**

    The keys.
    """
    return jax.vmap(jax.random.fold_in, (None, 0))(key, indices)


def integrate(
    scene: Scene,
    rays: Ray,
    integrator: AbstractIntegrator | None,
    keys: Key[Array, " rays"] | None,
    background: Float[Array, "rays 3"] | None,
    *,
    detailed: bool = False,
) -> tuple[Radiance, ...]:
    """`render_rays` with a key for every ray.

    **Arguments:**

    - all: as in `render_rays`, but `keys` holds one a ray.
    - `detailed`: whether normals and median depths are asked for too. Keyword only argument.

    **Returns:**

    The radiance of every level, over the background.
    """
    scene = unfreeze(scene)
    integrator = complete(integrator, scene) if integrator else choose_integrator(scene)
    shown = linearise(scene)
    if detailed:
        shown = dataclasses.replace(shown, root=Detailed(shown.root))
    levels = integrator(shown, rays, keys=keys)
    behind = jax.vmap(scene.background)(rays) if background is None else background
    return tuple(_over(level, behind) for level in levels)


_integrate = eqx.filter_jit(integrate)


def _over(level: Radiance, background: Float[Array, "rays 3"]) -> Radiance:
    rgb = jax.vmap(over)(level.rgb, level.alpha, background)
    return eqx.tree_at(lambda r: r.rgb, level, rgb)
