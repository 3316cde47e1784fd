import jax
import jax.numpy as jnp
from jaxtyping import Key

from .._typing import Array
from ..rays import Radiance, Ray
from ..scene import fills_space, Scene
from ._base import AbstractIntegrator
from ._hierarchical import Hierarchical


class Nothing(AbstractIntegrator):
    """The integrator of an empty scene: every ray goes through to the background."""

    @property
    def samples_per_ray(self) -> int:
        return 1

    def __call__(
        self, scene: Scene, rays: Ray, *, keys: Key[Array, " rays"] | None = None
    ) -> tuple[Radiance, ...]:
        del scene, keys

        def one_ray(ray: Ray) -> Radiance:
            zero = jnp.zeros_like(ray.far)
            edges = jnp.stack([ray.near, ray.far])
            return Radiance(jnp.zeros_like(ray.view), zero, ray.far, zero[None], edges)

        return (jax.vmap(one_ray)(rays),)


def choose_integrator(scene: Scene) -> AbstractIntegrator:
    """The integrator that a scene carries, or one that suits what is in it.

    **Arguments:**

    - `scene`: any scene.

    **Returns:**

    `scene.integrator`, or two levels of 64 samples where there are media.
    """
    if scene.integrator is not None:
        return scene.integrator
    return Hierarchical() if fills_space(scene.root) else Nothing()
