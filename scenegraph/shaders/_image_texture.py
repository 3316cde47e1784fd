import itertools
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from .._typing import Array, Color, Float, Int, Scalar, Vector
from ..images import Image
from ..numerics import as_float_leaf, require_finite, require_positive
from ..rays import Hit, Irradiance
from ._base import AbstractShader
from ._coordinates import AbstractCoordinates, footprint_area, OnSurface


# The four texels around a place, as steps down and to the right.
_AROUND = np.array(list(itertools.product((0, 1), repeat=2)))


def as_texels(value: Any) -> Any:
    """The numbers of a picture.

    **Arguments:**

    - `value`: an `Image`, or anything that is an array.

    **Returns:**

    The image's light (linear numbers, as scenes with lights have them), or the array as it is.
    """
    return value.space.to_linear(value.rgb) if isinstance(value, Image) else as_float_leaf(value)


class ImageTexture(AbstractShader):
    """A picture, interpolated between its texels, and averaged where a pixel covers many of them.

    The average comes from a pyramid of halved pictures, between the two nearest of which it is
    interpolated. The texels of the picture itself are leaves.

    **Arguments:**

    - `texels`: row 0 is the top. An `Image` gives its light; pass its `rgb` for its own numbers.
    - `size`: of the whole picture, to the right and upwards, in units of the coordinates.
    - `corner`: the place of the picture's lower left corner.
    - `repeat`: whether the plane is tiled with the picture; else its border goes on for ever.
      Static.
    - `coordinates`: `OnSurface()`, or `InSpace()`, of which x and y are used.

    **Source:** Williams 1983, "Pyramidal Parametrics".
    """

    texels: Float[Array, "height width 3"] = eqx.field(converter=as_texels)
    size: Float[Array, "2"] = eqx.field(converter=as_float_leaf, default=(1.0, 1.0))
    corner: Float[Array, "2"] = eqx.field(converter=as_float_leaf, default=(0.0, 0.0))
    repeat: bool = eqx.field(static=True, default=False)
    coordinates: AbstractCoordinates = OnSurface()

    def __check_init__(self):
        require_positive(self, "size")
        require_finite(self, "texels", "corner")
        if 0 in self.texels.shape:
            raise ValueError(
                f"`ImageTexture.texels` has no texel: its shape is {self.texels.shape}."
            )

    def __call__(self, hit: Hit, view: Vector, lights: Irradiance) -> Color:
        del view, lights
        place, slopes = self.coordinates(hit)
        right, up = (place[:2] - self.corner) / self.size
        height, width = self.texels.shape[:2]
        extent = jnp.asarray([width, height], place.dtype)
        covered = footprint_area(slopes[:2] * (extent / self.size)[:, None])
        return self._interpolate(jnp.stack([1 - up, right]), covered)

    def _interpolate(self, where: Float[Array, "2"], covered: Scalar) -> Color:
        """At a part of the height and width, over so many texels.

        No level depends on where the ray is, so that `vmap` over rays makes the pyramid once.
        """
        levels = halved(self.texels)
        shapes = np.array([level.shape[:2] for level in levels])
        first = np.concatenate([[0], np.cumsum(np.prod(shapes, axis=1))[:-1]])
        flat = jnp.concatenate([level.reshape(-1, 3) for level in levels])
        last = len(levels) - 1
        level = jnp.log2(jnp.clip(covered, 1, 4.0**last)) / 2
        finer = jnp.floor(level).astype(int)
        coarser = jnp.minimum(finer + 1, last)
        one, other = (
            self._bilinear(flat, jnp.asarray(first)[n], jnp.asarray(shapes)[n], where)
            for n in (finer, coarser)
        )
        return one + (level - finer) * (other - one)

    def _bilinear(
        self,
        flat: Float[Array, "texels 3"],
        first: Int[Array, ""],
        shape: Int[Array, "2"],
        where: Float[Array, "2"],
    ) -> Color:
        """Between the four nearest texels of one level."""
        inside = where * shape - 0.5
        low = jnp.floor(inside)
        rest = inside - low
        weights = jnp.prod(jnp.where(_AROUND == 1, rest, 1 - rest), axis=1)
        # Brought within the picture while still floating: far away they are too large for integers.
        cells = low + _AROUND
        cells = jnp.mod(cells, shape) if self.repeat else jnp.clip(cells, 0, shape - 1)
        row, column = cells.astype(int).T
        return jnp.sum(weights[:, None] * flat[first + row * shape[1] + column], axis=0)


def halved(texels: Float[Array, "height width 3"]) -> list[Float[Array, "_ _ 3"]]:
    """A picture, the picture at half the size, and so on to a single texel.

    **Arguments:**

    - `texels`: of any size.

    **Returns:**

    Pictures with the same mean colour.
    """
    levels = [texels]
    while max(levels[-1].shape[:2]) > 1:
        shorter = _halve(levels[-1])
        levels.append(jnp.swapaxes(_halve(jnp.swapaxes(shorter, 0, 1)), 0, 1))
    return levels


def _halve(rows: Float[Array, "n m 3"]) -> Float[Array, "_ m 3"]:
    """Means of two rows; of an odd number, those parts of three rows that a new row covers."""
    count = rows.shape[0]
    half = count // 2
    if count == 1:
        return rows
    if count % 2 == 0:
        return (rows[0::2] + rows[1::2]) / 2
    i = jnp.arange(half, dtype=rows.dtype)[:, None, None]
    above, below = rows[:-1:2], rows[2::2]
    return ((half - i) * above + half * rows[1::2] + (i + 1) * below) / count
