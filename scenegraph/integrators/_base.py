import abc
from typing import ClassVar

from jaxtyping import Key

from .._typing import Array
from ..numerics import AbstractModule
from ..rays import Layers, Radiance, Ray
from ..scene import Scene


class AbstractIntegrator(AbstractModule):
    """Works out what rays see of a scene. This is batch-level code: all rays at once.

    One that has little to do for a ray, and nothing for many at once, says so by a class attribute
    `by_ray = True`: a whole pixel is then one small function, from the camera to the colour.
    """

    by_ray: ClassVar[bool] = False

    @abc.abstractmethod
    def __call__(
        self, scene: Scene, rays: Ray, *, keys: Key[Array, " rays"] | None = None
    ) -> tuple[Radiance, ...]:
        """Integrates along many rays.

        **Arguments:**

        - `scene`: without frozen wrappers.
        - `rays`: with one leading axis.
        - `keys`: one a ray, for jitter and noise; `None` for deterministic samples. Keyword only
          argument.

        **Returns:**

        The radiance of every level, coarse to fine, before any background (premultiplied).
        """

    @property
    @abc.abstractmethod
    def samples_per_ray(self) -> int:
        """The largest number of samples that exist at once for a ray: sizes the chunks."""


class AbstractMediaIntegrator(AbstractIntegrator):
    """Integrates what fills space, with or without surfaces in it."""

    @abc.abstractmethod
    def through(
        self,
        scene: Scene,
        rays: Ray,
        layers: Layers | None,
        *,
        keys: Key[Array, " rays"] | None = None,
    ) -> tuple[Radiance, ...]:
        """Integrates along many rays that also see surfaces.

        **Arguments:**

        - `scene`, `rays`, `keys`: as in `__call__`.
        - `layers`: what the rays see of surfaces; `None` where there are none.

        **Returns:**

        The radiance of every level, coarse to fine, before any background (premultiplied).
        """

    def __call__(
        self, scene: Scene, rays: Ray, *, keys: Key[Array, " rays"] | None = None
    ) -> tuple[Radiance, ...]:
        return self.through(scene, rays, None, keys=keys)
