import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Key

from .._typing import Array, Float, PyTree, RandomKey
from ..compositing import over
from ..flat import FlatScene, flatten
from ..integrators import AbstractIntegrator, choose_integrator, fixed_key, uses_lists
from ..parallel import with_automatic_axes
from ..rays import Radiance, Ray
from ..scene import check_leaves, Scene
from ..visibility import invert_order, order_rays


def render_rays(
    scene: Scene,
    rays: Ray,
    integrator: AbstractIntegrator | None = None,
    *,
    key: RandomKey | None = None,
    background: Float[Array, "rays 3"] | None = None,
) -> tuple[Radiance, ...]:
    """Renders rays level by level, with weights and intervals: the input of losses.

    **Arguments:**

    - `scene`: the scene to render.
    - `rays`: the rays, in world coordinates, with one leading axis.
    - `integrator`: the integrator; by default the scene's own, or those of its volumes.
    - `key`: the key of jitter and noise, folded by the ray's index; `None` is deterministic.
      Keyword only argument.
    - `background`: a colour for every ray instead of the scene's background. Keyword only
      argument.

    **Returns:**

    The radiance of every level, coarse to fine, over the background.
    """
    check_leaves(scene)
    integrator = choose_integrator(scene, integrator)
    key = fixed_key(integrator, key)
    keys = None if key is None else fold_keys(key, jnp.arange(rays.near.shape[0]))
    return _render_rays(scene, rays, integrator, keys, background)


def fold_keys(key: RandomKey, indices: Array) -> Key[Array, " rays"]:
    """Returns a key for every ray that depends on nothing but its index."""
    return jax.vmap(jax.random.fold_in, (None, 0))(key, indices)


@eqx.filter_jit
def _render_rays(
    scene: Scene,
    rays: Ray,
    integrator: AbstractIntegrator,
    keys: Key[Array, " rays"] | None,
    background: Float[Array, "rays 3"] | None,
) -> tuple[Radiance, ...]:
    def compute(tree: PyTree) -> tuple[Radiance, ...]:
        scene, rays, keys, background = tree
        return integrate_anyhow(flatten(scene), rays, integrator, keys, background)

    return with_automatic_axes(compute, (scene, rays, keys, background))


def integrate_anyhow(
    scene: FlatScene,
    rays: Ray,
    integrator: AbstractIntegrator,
    keys: Key[Array, " rays"] | None,
    background: Float[Array, "rays 3"] | None = None,
) -> tuple[Radiance, ...]:
    """Integrates rays that come in any order; those that go together are integrated together."""
    if not uses_lists(integrator, scene):
        return integrate(scene, rays, integrator, keys, background)
    order = jax.lax.stop_gradient(order_rays(rays))
    rows = jax.tree.map(lambda x: x[order], (rays, keys, background))
    levels = integrate(scene, rows[0], integrator, *rows[1:])
    back = invert_order(order)
    return jax.tree.map(lambda x: x[back], levels)


def integrate(
    scene: FlatScene,
    rays: Ray,
    integrator: AbstractIntegrator,
    keys: Key[Array, " rays"] | None,
    background: Float[Array, "rays 3"] | None = None,
    *,
    outputs: tuple[str, ...] = (),
) -> tuple[Radiance, ...]:
    """Integrates rays with a key each, over the background; `outputs` as for integrators."""
    levels = integrator(scene, rays, keys=keys, outputs=outputs)
    behind = jax.vmap(scene.background)(rays) if background is None else background
    behind = behind.astype(rays.near.dtype)
    return tuple(_over(level, behind) for level in levels)


def _over(level: Radiance, background: Float[Array, "rays 3"]) -> Radiance:
    rgb = jax.vmap(over)(level.rgb, level.alpha, background)
    return eqx.tree_at(lambda r: r.rgb, level, rgb)
