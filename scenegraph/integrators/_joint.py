from jaxtyping import Key

from .._typing import Array
from ..rays import Radiance, Ray
from ..scene import Scene
from ._base import AbstractIntegrator, AbstractMediaIntegrator
from ._hierarchical import Hierarchical
from ._surfaces import Surfaces


class Joint(AbstractIntegrator):
    """Sees media and surfaces together: media before, between and behind the layers.

    **Arguments:**

    - `media`: how media are sampled.
    - `surfaces`: how surfaces are seen.
    """

    media: AbstractMediaIntegrator = Hierarchical()
    surfaces: Surfaces = Surfaces()

    @property
    def samples_per_ray(self) -> int:
        return self.media.samples_per_ray + self.surfaces.samples_per_ray

    def __call__(
        self, scene: Scene, rays: Ray, *, keys: Key[Array, " rays"] | None = None
    ) -> tuple[Radiance, ...]:
        return self.media.through(scene, rays, self.surfaces.see(scene, rays), keys=keys)
