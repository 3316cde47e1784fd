import jax
from jaxtyping import Key

from .._typing import Array, Float
from ..rays import Layers, Radiance, Ray
from ..scene import Scene
from ._base import AbstractIntegrator, AbstractMediaIntegrator
from ._hierarchical import fold, Hierarchical, positions
from ._joint import Joint


class Held(AbstractMediaIntegrator):
    """A hierarchical integrator whose finer samples stay where they once were.

    Its derivatives are those that `Hierarchical` computes with `stop_gradient`, and its values
    agree with them: finite differences of it are what such gradients can be compared with.

    **Arguments:**

    - `integrator`: the one that is held.
    - `shares`: where the bin edges of every level but the first lie between the ends of what a
      ray sees, for the very rays that will be asked.
    """

    integrator: Hierarchical
    shares: tuple[Float[Array, "rays edges"], ...]

    @property
    def samples_per_ray(self) -> int:
        return self.integrator.samples_per_ray

    def through(
        self,
        scene: Scene,
        rays: Ray,
        layers: Layers | None,
        *,
        keys: Key[Array, " rays"] | None = None,
    ) -> tuple[Radiance, ...]:
        prepared, spans = jax.vmap(scene.root.prepare)(rays), jax.vmap(scene.root.span)(rays)
        near, far = spans.near[:, None], spans.far[:, None]
        finer = [near + share * (far - near) for share in self.shares]
        levels = [self.integrator.first_edges(spans, keys), *finer]
        return tuple(
            self.integrator.integrate_at(
                scene, rays, prepared, edges, fold(keys, 2 * level + 1), layers, level=level
            )
            for level, edges in enumerate(levels)
        )


def hold(integrator: AbstractIntegrator, scene: Scene, rays: Ray) -> AbstractIntegrator:
    """An integrator that no longer moves what it takes for constant.

    **Arguments:**

    - `integrator`: any.
    - `scene`: as it is now, without frozen wrappers.
    - `rays`: that will be asked.

    **Returns:**

    A `Held`, if the integrator stops gradients at sample positions; else the same integrator.
    """
    if isinstance(integrator, Joint):
        layers = integrator.surfaces.see(scene, rays)
        return Joint(_held(integrator.media, scene, rays, layers), integrator.surfaces)
    if isinstance(integrator, AbstractMediaIntegrator):
        return _held(integrator, scene, rays, None)
    return integrator


def _held(
    integrator: AbstractMediaIntegrator, scene: Scene, rays: Ray, layers: Layers | None
) -> AbstractMediaIntegrator:
    if not isinstance(integrator, Hierarchical) or not integrator.stop_gradient:
        return integrator
    spans = jax.vmap(scene.root.span)(rays)
    finer = integrator.through(scene, rays, layers)[1:]
    return Held(integrator, tuple(jax.vmap(positions)(x.edges, spans) for x in finer))
