import abc
from typing import Any

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
from ._reader import PixelReader
from ._scene_cameras import ScenePixels
from ._views import Views


class Batch(AbstractModule):
    """Rays and the colours that they should see.

    **Arguments:**

    - `rays`: rays with one leading axis; or pixels of cameras in the scene.
    - `rgb`: the colours of their pixels, `rays 3`.
    - `lossmult`: the weight of each ray in the loss, `rays`.
    - `background`: the colours to render them over, `rays 3`; `None` for the scene's background.
    - `points`: the points of the scene that the rays meet first, where that is known, `rays 3`;
      infinite where it is not, and `None` if it is for no ray.
    """

    rays: Ray | ScenePixels
    rgb: Float[Array, "rays 3"] = eqx.field(converter=as_float_leaf)
    lossmult: Float[Array, " rays"] = eqx.field(converter=as_float_leaf)
    background: Float[Array, "rays 3"] | None = None
    points: Float[Array, "rays 3"] | None = None


class DrawnPixels(AbstractModule):
    """Pixels that were drawn for a batch: their pictures, columns and rows, and values."""

    frame: Int[Array, " rays"]
    place: Int[Array, "rays 2"]
    # With `Annealing`, the values are those of a square about each pixel.
    values: (
        UInt8[Array, "rays channels"]
        | Float[Array, "rays channels"]
        | UInt8[Array, "rays window window channels"]
        | Float[Array, "rays window window channels"]
    )


class AbstractPixelChoice(AbstractModule):
    """A rule by which the pixels of random batches are drawn."""

    @abc.abstractmethod
    def __call__(self, views: Views, count: int, key: RandomKey) -> Int[Array, " rays"]:
        """Draws pixels, with replacement.

        **Arguments:**

        - `views`: the pictures.
        - `count`: the number of pixels; static.
        - `key`: the key of the batch.

        **Returns:**

        Indices in the flat list of pixels, `rays`.
        """


class AllImages(AbstractPixelChoice):
    """Pixels from all pictures, each as likely as any other."""

    def __call__(self, views: Views, count: int, key: RandomKey) -> Int[Array, " rays"]:
        return jax.random.randint(key, (count,), 0, views.pixels.shape[0])


class SingleImage(AbstractPixelChoice):
    """Pixels from one picture a batch, as mip-NeRF draws them from Blender data."""

    def __call__(self, views: Views, count: int, key: RandomKey) -> Int[Array, " rays"]:
        # Every picture is equally likely, whatever its size.
        frame_key, pixel_key = jax.random.split(key)
        frame = jax.random.randint(frame_key, (), 0, views.frames)
        size = (views.widths * views.heights)[frame]
        return views.starts()[frame] + jax.random.randint(pixel_key, (count,), 0, size)


class RayBatches(AbstractModule):
    """Random batches of rays: batch `step` is a pure function of `(seed, step)`.

    **Arguments:**

    - `views`: the pictures.
    - `size`: the number of rays in a batch; static.
    - `choice`: the rule by which pixels are drawn.
    - `annealing`: the schedule for the width of rays; `None` for one pixel always.
    - `space`: the colour space of the scene; `None` for that of the pictures.
    - `sighted`: the number of rays of a batch that go through pixels of `Views.sightings`; static.
    """

    views: Views
    size: int = eqx.field(static=True, default=1024)
    choice: AbstractPixelChoice = AllImages()
    annealing: Annealing | None = None
    space: AbstractColorSpace | None = None
    sighted: int = eqx.field(static=True, default=0)

    def __check_init__(self):
        if not 0 < self.size < 2**31:
            raise ValueError(f"a batch has between 1 and 2**31 - 1 rays; got {self.size}.")
        if not 0 <= self.sighted < self.size or (self.sighted and self.views.sightings is None):
            raise ValueError(
                f"`sighted` rays are fewer than the batch's {self.size}, and 0 for pictures "
                f"without `sightings`; got {self.sighted}."
            )

    def batch(
        self,
        seed: Integer[Array, ""] | int,
        step: Integer[Array, ""] | int,
        horizon: Float[Array, ""] | float = 0.0,
    ) -> Batch:
        """Makes the batch of one step.

        **Arguments:**

        - `seed`: the seed of the whole fit.
        - `step`: the number of the step.
        - `horizon`: the number of the last step, for an `annealing` by a part of the fit.

        **Returns:**

        The batch.
        """
        return self.assemble(self.draw(seed, step), seed, step, horizon)

    def draw(self, seed: Integer[Array, ""] | int, step: Integer[Array, ""] | int) -> DrawnPixels:
        """Draws the pixels of one step.

        `TypeError` in compiled functions, if the pixels are in a file: `fit` reads that outside.
        """
        # Apart from `assemble`: pixels in a file are read on the host, the rest is compiled.
        file = self.views.pixels
        if isinstance(file, MappedArray):
            return self._read(file, seed, step)
        indices = self.indices(seed, step)
        frame, place = self.views.locate(indices)
        places = indices
        if self.annealing is not None:
            sizes = jnp.stack([self.views.widths, self.views.heights], axis=-1)[frame]
            places = self.annealing.windows(self.views.starts()[frame], sizes, place)
        return DrawnPixels(frame, place, file[places])

    def _read(
        self, file: MappedArray, seed: Integer[Array, ""] | int, step: Integer[Array, ""] | int
    ) -> DrawnPixels:
        if isinstance(seed, Tracer) or isinstance(step, Tracer):
            raise TypeError("the pixels are in a file, which compiled functions cannot read.")
        frame, place, rows = PixelReader(self).draw(int(seed), int(step))
        return DrawnPixels(*map(jnp.asarray, (frame, place, file.take(rows))))

    def indices(
        self, seed: Integer[Array, ""] | int, step: Integer[Array, ""] | int
    ) -> Int[Array, " rays"]:
        """Draws the indices, in the flat list, of one step's pixels."""
        key = self._keys(seed, step)[0]
        if self.views.sightings is None or not self.sighted:
            return self.choice(self.views, self.size, key)
        others = self.choice(self.views, self.size - self.sighted, key)
        pixels = self.views.sightings.pixel[self._drawn_sightings(seed, step)]
        return jnp.concatenate([others, pixels.astype(others.dtype)])

    def _drawn_sightings(
        self, seed: Integer[Array, ""] | int, step: Integer[Array, ""] | int
    ) -> Int[Array, " sighted"]:
        """Draws the sightings of one step."""
        sightings: Any = self.views.sightings
        key = jax.random.fold_in(self._keys(seed, step)[1], 1)
        return jax.random.randint(key, (self.sighted,), 0, sightings.pixel.shape[0])

    def _points(
        self, seed: Integer[Array, ""] | int, step: Integer[Array, ""] | int
    ) -> Float[Array, "rays 3"] | None:
        """Returns what the last rays of a step meet; the others meet nothing that is known."""
        if self.views.sightings is None or not self.sighted:
            return None
        known = self.views.sightings.point[self._drawn_sightings(seed, step)]
        unknown = jnp.full((self.size - self.sighted, 3), jnp.inf, known.dtype)
        return jnp.concatenate([unknown, known])

    def assemble(
        self,
        drawn: DrawnPixels,
        seed: Integer[Array, ""] | int,
        step: Integer[Array, ""] | int,
        horizon: Float[Array, ""] | float = 0.0,
    ) -> Batch:
        """Makes the batch of a step of the pixels that `draw` drew for it."""
        # Random backdrops go into the pixels and behind the rays alike.
        behind = self.views.backdrop.behind(self._keys(seed, step)[1], self.size)
        rgba, width, lossmult = self._pixels(drawn, step, horizon)
        rgb = self._convert(self.views.backdrop.compose(rgba, behind))
        behind = None if behind is None else self._convert(behind)
        rays = self.views.rays_at(drawn.frame, drawn.place, width)
        return Batch(rays, rgb, lossmult, behind, self._points(seed, step))

    def _keys(
        self, seed: Integer[Array, ""] | int, step: Integer[Array, ""] | int
    ) -> Key[Array, " 2"]:
        """Derives a step's keys: that of the pixels, and that of the backdrop."""
        # A pure function of seed and step: a resumed fit sees the batches that it would have seen.
        return jax.random.split(jax.random.fold_in(jax.random.key(seed), step))

    def _pixels(
        self,
        drawn: DrawnPixels,
        step: Integer[Array, ""] | int,
        horizon: Float[Array, ""] | float,
    ) -> tuple[Float[Array, "rays channels"], Scalar | float, Float[Array, " rays"]]:
        """Returns the pixels' values, the width of their rays, and their weights in the loss."""
        values = self.views.as_floats(drawn.values)
        lossmult = self.views.weights_at(drawn.frame, drawn.place)
        if self.annealing is None:
            return values, 1.0, lossmult
        # Rays as wide as the squares that the pixels are averaged over.
        width = self.annealing(step, horizon)
        sizes = jnp.stack([self.views.widths, self.views.heights], axis=-1)[drawn.frame]
        inside = self.annealing.is_inside(sizes, drawn.place, width)
        return self.annealing.mean(values, width), width, lossmult * inside

    def _convert(self, rgb: Float[Array, "rays 3"]) -> Float[Array, "rays 3"]:
        """Converts colours from the pictures' space to the scene's."""
        if self.space is None or isinstance(self.views.space, type(self.space)):
            return rgb
        return self.space.from_linear(self.views.space.to_linear(rgb))
