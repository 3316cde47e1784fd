import abc

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.core import Tracer
from jaxtyping import Key

from .._typing import Array, Float, Int, Integer, RandomKey, Scalar, UInt8
from ..images import AbstractColorSpace
from ..io import MappedArray
from ..numerics import AbstractModule, as_float_leaf
from ..rays import Ray
from ._annealing import Annealing
from ._in_scene import Pixels
from ._reader import PixelReader
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


class Drawn(AbstractModule):
    """Pixels that were drawn for a batch."""

    frame: Int[Array, " rays"]
    place: Int[Array, "rays 2"]
    values: (
        UInt8[Array, "rays channels"]
        | Float[Array, "rays channels"]
        | UInt8[Array, "rays window window channels"]
        | Float[Array, "rays window window channels"]
    )


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
        return self.assemble(self.draw(seed, step), seed, step)

    def draw(self, seed: Integer[Array, ""] | int, step: Integer[Array, ""] | int) -> Drawn:
        """The pixels of one step.

        **Arguments:**

        - `seed`, `step`: as for `batch`.

        **Returns:**

        The pixels.

        **Errors:**

        `TypeError` inside of compiled functions, if the pixels are in a file: `fit` reads that.
        """
        file = self.views.pixels
        if isinstance(file, MappedArray):
            return self._read(file, seed, step)
        indices = self.indices(seed, step)
        frame, place = self.views.locate(indices)
        places = indices
        if self.annealing is not None:
            sizes = jnp.stack([self.views.widths, self.views.heights], axis=-1)[frame]
            places = self.annealing.squares(self.views.starts()[frame], sizes, place)
        return Drawn(frame, place, file[places])

    def _read(
        self, file: MappedArray, seed: Integer[Array, ""] | int, step: Integer[Array, ""] | int
    ) -> Drawn:
        if isinstance(seed, Tracer) or isinstance(step, Tracer):
            raise TypeError("the pixels are in a file, which compiled functions cannot read.")
        frame, place, rows = PixelReader(self).draw(int(seed), int(step))
        return Drawn(*map(jnp.asarray, (frame, place, file.take(rows))))

    def indices(
        self, seed: Integer[Array, ""] | int, step: Integer[Array, ""] | int
    ) -> Int[Array, " rays"]:
        """Which pixels of the flat list the batch of one step is of.

        **Arguments:**

        - `seed`, `step`: as for `batch`.

        **Returns:**

        The indices.
        """
        return self.choice(self.views, self.size, self._keys(seed, step)[0])

    def assemble(
        self, drawn: Drawn, seed: Integer[Array, ""] | int, step: Integer[Array, ""] | int
    ) -> Batch:
        """Makes a batch of its pixels.

        **Arguments:**

        - `drawn`: from `draw`.
        - `seed`, `step`: as there.

        **Returns:**

        The batch.
        """
        behind = self.views.backdrop.behind(self._keys(seed, step)[1], self.size)
        rgba, width, lossmult = self._pixels(drawn, step)
        rgb = self._convert(self.views.backdrop.compose(rgba, behind))
        behind = None if behind is None else self._convert(behind)
        rays = self.views.rays_at(drawn.frame, drawn.place, width)
        return Batch(rays, rgb, lossmult, behind)

    def _keys(
        self, seed: Integer[Array, ""] | int, step: Integer[Array, ""] | int
    ) -> Key[Array, " 2"]:
        """For the pixels, and for what is behind them."""
        return jax.random.split(jax.random.fold_in(jax.random.key(seed), step))

    def _pixels(
        self, drawn: Drawn, step: Integer[Array, ""] | int
    ) -> tuple[Float[Array, "rays channels"], Scalar | float, Float[Array, " rays"]]:
        """What pixels show, how wide rays to them are, and how much each counts."""
        values, lossmult = self.views.as_floats(drawn.values), self.views.lossmult[drawn.frame]
        if self.annealing is None:
            return values, 1.0, lossmult
        width = self.annealing(step)
        sizes = jnp.stack([self.views.widths, self.views.heights], axis=-1)[drawn.frame]
        inside = self.annealing.inside(sizes, drawn.place, width)
        return self.annealing.mean(values, width), width, lossmult * inside

    def _convert(self, rgb: Float[Array, "rays 3"]) -> Float[Array, "rays 3"]:
        """From the pictures' numbers to the scene's."""
        if self.space is None or type(self.space) is type(self.views.space):
            return rgb
        return self.space.from_linear(self.views.space.to_linear(rgb))
