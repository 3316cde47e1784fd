import jax
import jax.numpy as jnp
from jaxtyping import Key

from .._typing import Array
from ..rays import Radiance, Ray
from ..scene import Detailed, fills_space, has_surfaces, Scene
from ._base import AbstractIntegrator, AbstractMediaIntegrator
from ._hierarchical import Hierarchical
from ._joint import Joint
from ._surfaces import Surfaces


class Nothing(AbstractIntegrator):
    """The integrator of an empty scene: every ray goes through to the background."""

    @property
    def samples_per_ray(self) -> int:
        return 1

    def __call__(
        self, scene: Scene, rays: Ray, *, keys: Key[Array, " rays"] | None = None
    ) -> tuple[Radiance, ...]:
        del keys
        detailed = isinstance(scene.root, Detailed)

        def one_ray(ray: Ray) -> Radiance:
            zero, black = jnp.zeros_like(ray.far), jnp.zeros_like(ray.view)
            edges = jnp.stack([ray.near, ray.far])
            details = {"normal": black, "median_depth": ray.far} if detailed else {}
            return Radiance(black, zero, ray.far, zero[None], edges, **details)

        return (jax.vmap(one_ray)(rays),)


def choose_integrator(scene: Scene) -> AbstractIntegrator:
    """The integrator that a scene carries, or one that suits what is in it.

    **Arguments:**

    - `scene`: any scene.

    **Returns:**

    `scene.integrator`, or two levels of 64 samples where there are media, and the four nearest
    layers where there are surfaces.
    """
    chosen = scene.integrator
    if chosen is None:
        chosen = Hierarchical() if fills_space(scene.root) else Nothing()
    return complete(chosen, scene)


def complete(integrator: AbstractIntegrator, scene: Scene) -> AbstractIntegrator:
    """An integrator that leaves nothing out: one of media alone also sees the surfaces.

    **Arguments:**

    - `integrator`: any.
    - `scene`: without frozen wrappers.

    **Returns:**

    The integrator, joined with `Surfaces()` if there are surfaces that it would not see.

    **Errors:**

    `ValueError` for one that sees surfaces alone, where there are media too.
    """
    media, surfaces = fills_space(scene.root), has_surfaces(scene.root)
    if isinstance(integrator, Surfaces) and media:
        raise ValueError(
            "there are media in the scene, which the integrator `Surfaces` does not see; use "
            "`Joint(Hierarchical(...), Surfaces(...))`."
        )
    if surfaces and isinstance(integrator, Nothing):
        return Surfaces()
    if surfaces and isinstance(integrator, AbstractMediaIntegrator):
        return Joint(integrator) if media else Surfaces()
    return integrator
