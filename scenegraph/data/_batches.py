import abc

import equinox as eqx
import jax

from .._typing import Array, Float, Int, Integer, RandomKey, Scalar
from ..images import AbstractColorSpace
from ..numerics import AbstractModule, as_float_leaf
from ..rays import Ray
from ._annealing import Annealing
from ._in_scene import Pixels
from ._views import Views


class Batch(AbstractModule):
    """Rays and what they should see.

    **Arguments:**

    - `rays`: with one leading axis; or pixels of cameras in the scene.
    - `rgb`: the colours of their pixels.
    - `lossmult`: how much each counts.
    - `background`: what to render them over; `None` for the scene's background.
    """

    rays: Ray | Pixels
    rgb: Float[Array, "rays 3"] = eqx.field(converter=as_float_leaf)
    lossmult: Float[Array, " rays"] = eqx.field(converter=as_float_leaf)
    background: Float[Array, "rays 3"] | None = None


class AbstractPixelChoice(AbstractModule):
    """Which pixels make up a random batch."""

    @abc.abstractmethod
    def __call__(self, views: Views, count: int, key: RandomKey) -> Int[Array, " rays"]:
        """Draws pixels, with replacement.

        **Arguments:**

        - `views`: the pictures.
        - `count`: how many pixels; static.
        - `key`: of the batch.

        **Returns:**

        Indices in the flat list of pixels.
        """


class AllImages(AbstractPixelChoice):
    """Pixels from all pictures, each as likely as any other."""

    def __call__(self, views: Views, count: int, key: RandomKey) -> Int[Array, " rays"]:
        return jax.random.randint(key, (count,), 0, views.pixels.shape[0])


class SingleImage(AbstractPixelChoice):
    """Pixels from one picture a batch, as mip-NeRF draws them from Blender data."""

    def __call__(self, views: Views, count: int, key: RandomKey) -> Int[Array, " rays"]:
        frame_key, pixel_key = jax.random.split(key)
        frame = jax.random.randint(frame_key, (), 0, views.frames)
        size = (views.widths * views.heights)[frame]
        return views.starts()[frame] + jax.random.randint(pixel_key, (count,), 0, size)


class RayBatches(AbstractModule):
    """Random batches of rays: batch `step` is a pure function of `(seed, step)`.

    **Arguments:**

    - `views`: the pictures.
    - `size`: rays a batch.
    - `choice`: which pixels.
    - `annealing`: how wide rays are at first; `None` for one pixel always.
    - `space`: which numbers the scene's colours are; `None` for those of the pictures.
    """

    views: Views
    size: int = eqx.field(static=True, default=1024)
    choice: AbstractPixelChoice = AllImages()
    annealing: Annealing | None = None
    space: AbstractColorSpace | None = None

    def __check_init__(self):
        if not 0 < self.size < 2**31:
            raise ValueError(f"a batch has between 1 and 2**31 - 1 rays; got {self.size}.")

    def batch(self, seed: Integer[Array, ""] | int, step: Integer[Array, ""] | int) -> Batch:
        """The batch of one step.

        **Arguments:**

        - `seed`: of the whole fit.
        - `step`: its number.

        **Returns:**

        The batch.
        """
        key = jax.random.fold_in(jax.random.key(seed), step)
        pixel_key, backdrop_key = jax.random.split(key)
        indices = self.choice(self.views, self.size, pixel_key)
        behind = self.views.backdrop.behind(backdrop_key, self.size)
        rgba, width, lossmult = self._pixels(indices, step)
        rgb = self._convert(self.views.backdrop.compose(rgba, behind))
        behind = None if behind is None else self._convert(behind)
        return Batch(self.views.rays(indices, width), rgb, lossmult, behind)

    def _pixels(
        self, indices: Int[Array, " rays"], step: Integer[Array, ""] | int
    ) -> tuple[Float[Array, "rays channels"], Scalar | float, Float[Array, " rays"]]:
        """What pixels show, how wide rays to them are, and how much each counts."""
        lossmult = self.views.lossmult[self.views.frame_of(indices)]
        if self.annealing is None:
            return self.views.rgba(indices), 1.0, lossmult
        width = self.annealing(step)
        means, inside = self.views.means(indices, self.annealing, width)
        return means, width, lossmult * inside

    def _convert(self, rgb: Float[Array, "rays 3"]) -> Float[Array, "rays 3"]:
        """From the pictures' numbers to the scene's."""
        if self.space is None or type(self.space) is type(self.views.space):
            return rgb
        return self.space.from_linear(self.views.space.to_linear(rgb))
