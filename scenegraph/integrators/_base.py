import abc

from jaxtyping import Key

from .._typing import Array
from ..numerics import AbstractModule
from ..rays import Radiance, Ray
from ..scene import Scene


class AbstractIntegrator(AbstractModule):
    """Works out what rays see of a scene. This is batch-level code: all rays at once."""

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
