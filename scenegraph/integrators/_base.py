import abc

from jaxtyping import Key

from .._typing import Array, Float, Int
from ..flat import FlatScene
from ..numerics import AbstractModule
from ..rays import Layers, Medium, Radiance, Ray


class AbstractIntegrator(AbstractModule):
    """Computes the radiance along rays. This is batch-level code: all rays at once."""

    @abc.abstractmethod
    def __call__(
        self,
        scene: FlatScene,
        rays: Ray,
        *,
        keys: Key[Array, " rays"] | None = None,
        outputs: tuple[str, ...] = (),
    ) -> tuple[Radiance, ...]:
        """Integrates along many rays.

        **Arguments:**

        - `scene`: the scene, from `sg.flat.flatten`.
        - `rays`: the rays, in world coordinates, with one leading axis.
        - `keys`: one key a ray, for jitter and noise; `None` for deterministic samples. Keyword
          only, like everything that follows.
        - `outputs`: names of fields of `Radiance` to compute beside colour, opacity and depth:
          `"normal"`, `"median_depth"`, `"albedo"`, `"uv"`, `"position"`, `"surface"`, `"variance"`.

        **Returns:**

        The radiance of every level, coarse to fine, before any background (premultiplied).
        """

    @property
    @abc.abstractmethod
    def budget(self) -> int | None:
        """The number of samples a ray, on average, for which there is space.

        `None` where every ray has samples of its own.
        """

    @property
    @abc.abstractmethod
    def samples_per_ray(self) -> int:
        """The largest number of samples of a ray that exist at once: sizes the chunks."""

    @abc.abstractmethod
    def with_budget(self, samples: float) -> "AbstractIntegrator":
        """Returns an integrator with the least budget that serves.

        **Arguments:**

        - `samples`: the number of samples that a ray needs, on average.

        **Returns:**

        The integrator with the next larger of a few budgets; the same one if it has no budget.
        """

    @abc.abstractmethod
    def with_fixed_samples(self, scene: FlatScene, rays: Ray) -> "AbstractIntegrator":
        """Returns an integrator whose sample positions no longer depend on the scene.

        Its values agree with gradients that stop at sample positions: finite differences of it are
        what such gradients are compared with.

        **Arguments:**

        - `scene`: the scene, from `sg.flat.flatten`.
        - `rays`: the rays that will be integrated.

        **Returns:**

        The integrator; the same one if it does not stop gradients.
        """


class MediaAlong(AbstractModule):
    """Media in consecutive intervals of rays, with the same density all over an interval."""

    medium: Medium  # "*volumes rays samples"
    edges: Float[Array, "*volumes rays edges"]
    # The numbers of samples that found no space, and that were requested, if rays share a budget.
    overflow: Int[Array, "*volumes rays"] | None = None
    requested: Int[Array, "*volumes rays"] | None = None


class AbstractMediaIntegrator(AbstractIntegrator):
    """Integrates the media of a scene, among layers of surfaces if there are any."""

    @abc.abstractmethod
    def media_along(
        self,
        scene: FlatScene,
        rays: Ray,
        layers: Layers | None = None,
        *,
        keys: Key[Array, " rays"] | None = None,
        normal: bool = False,
    ) -> MediaAlong:
        """Samples the media of the last level; `layers` are the surfaces on the rays."""

    @abc.abstractmethod
    def __call__(
        self,
        scene: FlatScene,
        rays: Ray,
        layers: Layers | None = None,
        *,
        keys: Key[Array, " rays"] | None = None,
        outputs: tuple[str, ...] = (),
    ) -> tuple[Radiance, ...]:
        """Integrates along many rays, as any integrator; `layers` are the surfaces on the rays."""

    @abc.abstractmethod
    def with_fixed_samples(
        self, scene: FlatScene, rays: Ray, layers: Layers | None = None
    ) -> "AbstractMediaIntegrator":
        """Fixes sample positions, as any integrator; `layers` are the surfaces on the rays."""
