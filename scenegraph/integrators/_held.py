import dataclasses

import jax
from jaxtyping import Key

from .._typing import Array, Float
from ..rays import Radiance, Ray
from ..scene import Scene
from ._base import AbstractIntegrator
from ._hierarchical import fold, Hierarchical, positions


class Held(AbstractIntegrator):
    """A hierarchical integrator whose finer samples stay where they once were.

    Its derivatives are those that `Hierarchical` computes with `stop_gradient`, and its values
    agree with them: finite differences of it are what such gradients can be compared with.

    **Arguments:**

    - `integrator`: the one that is held.
    - `shares`: where the fence posts of every level but the first lie between the ends of what a
      ray sees, for the very rays that will be asked.
    """

    integrator: Hierarchical
    shares: tuple[Float[Array, "rays edges"], ...]

    @property
    def samples_per_ray(self) -> int:
        return self.integrator.samples_per_ray

    def __call__(
        self, scene: Scene, rays: Ray, *, keys: Key[Array, " rays"] | None = None
    ) -> tuple[Radiance, ...]:
        first = dataclasses.replace(self.integrator, samples=self.integrator.samples[:1])
        prepared, spans = jax.vmap(scene.root.prepare)(rays), jax.vmap(scene.root.span)(rays)
        near, far = spans.near[:, None], spans.far[:, None]
        levels = list(first(scene, rays, keys=keys))
        for level, share in enumerate(self.shares, 1):
            edges, noise_keys = near + share * (far - near), fold(keys, 2 * level + 1)
            levels.append(self.integrator.integrate_at(scene, rays, prepared, edges, noise_keys))
        return tuple(levels)


def hold(integrator: AbstractIntegrator, scene: Scene, rays: Ray) -> AbstractIntegrator:
    """An integrator that no longer moves what it takes for constant.

    **Arguments:**

    - `integrator`: any.
    - `scene`: as it is now, without frozen wrappers.
    - `rays`: that will be asked.

    **Returns:**

    A `Held`, if the integrator stops gradients at sample positions; else the same integrator.
    """
    if isinstance(integrator, Hierarchical) and integrator.stop_gradient:
        spans = jax.vmap(scene.root.span)(rays)
        finer = integrator(scene, rays)[1:]
        return Held(integrator, tuple(jax.vmap(positions)(x.edges, spans) for x in finer))
    return integrator
