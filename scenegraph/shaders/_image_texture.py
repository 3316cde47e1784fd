import itertools
import os
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from .._typing import Array, Color, Float, Int, Scalar, Vector
from ..images import as_light, Image
from ..numerics import as_float_leaf, require_finite, require_positive
from ..rays import Hit, Irradiance
from ._base import AbstractShader
from ._coordinates import AbstractCoordinates, footprint_area, OnSurface


# The four texels around a position, as steps down and to the right.
_AROUND = np.array(list(itertools.product((0, 1), repeat=2)))


def _as_corner(value: Any) -> Any:
    """Converts a corner to a leaf; `None` stays."""
    return None if value is None else as_float_leaf(value)


class ImageTexture(AbstractShader):
    """A picture, interpolated between its texels, and averaged where a pixel covers many of them.

    The average comes from a mip map, a pyramid of halved pictures, by interpolation between the two
    nearest levels. The texels of the picture itself are leaves.

    **Arguments:**

    - `texels`: the picture, with its top row first. An `Image` gives its linear light; pass its
      `rgb` for its own numbers. An array of 8 or 16 bits is read as the sRGB numbers of a file.
    - `size`: the picture's extent to the right and upwards, in units of the coordinates.
    - `corner`: the position of the picture's lower left corner, in the coordinates; `None` for a
      picture about their origin, which on a `Rectangle` or `Disk` of this size is the centre.
    - `repeat`: if true, the picture tiles the plane; else its border goes on for ever. Static.
    - `coordinates`: `OnSurface()`, or `InSpace()`, of which x and y are used.

    **Source:** Williams 1983, "Pyramidal Parametrics".
    """

    texels: Float[Array, "height width 3"] = eqx.field(converter=as_light)
    size: Float[Array, "2"] = eqx.field(converter=as_float_leaf, default=(1.0, 1.0))
    corner: Float[Array, "2"] | None = eqx.field(converter=_as_corner, default=None)
    repeat: bool = eqx.field(static=True, default=False)
    coordinates: AbstractCoordinates = OnSurface()

    @classmethod
    def load(cls, path: str | os.PathLike, **options: Any) -> "ImageTexture":
        """Loads a picture file as a texture.

        **Arguments:**

        - `path`: the path of the file; see `Image.load`. What is not opaque lies over black.
        - `options`: the other arguments of `ImageTexture`.

        **Returns:**

        The texture, in linear light.

        **Errors:**

        `FileError` for a file that is missing, damaged, or of another kind.
        """
        return cls(Image.load(path), **options)

    def __check_init__(self):
        require_positive(self, "size")
        require_finite(self, "texels", *(["corner"] if self.corner is not None else []))
        if 0 in self.texels.shape:
            shape = self.texels.shape
            raise ValueError(f"`ImageTexture.texels` must have at least one texel; got {shape}.")

    def __call__(self, hit: Hit, view: Vector, lights: Irradiance) -> Color:
        del view, lights
        position, derivatives = self.coordinates(hit)
        corner = -self.size / 2 if self.corner is None else self.corner
        right, up = (position[:2] - corner) / self.size
        height, width = self.texels.shape[:2]
        extent = jnp.asarray([width, height], position.dtype)
        covered = footprint_area(derivatives[:2] * (extent / self.size)[:, None])
        return self._interpolate(jnp.stack([1 - up, right]), covered)

    def _interpolate(self, at: Float[Array, "2"], covered: Scalar) -> Color:
        """Averages over `covered` texels at parts of height and width, by trilinear interpolation.

        No level depends on the ray, so that `vmap` over rays makes the pyramid once.
        """
        levels = halved(self.texels)
        shapes = np.array([level.shape[:2] for level in levels])
        first = np.concatenate([[0], np.cumsum(np.prod(shapes, axis=1))[:-1]])
        flat = jnp.concatenate([level.reshape(-1, 3) for level in levels])
        last = len(levels) - 1
        # A texel of level l stands for 4^l texels: l = log4(covered) = log2(covered) / 2.
        level = jnp.log2(jnp.clip(covered, 1, 4.0**last)) / 2
        finer = jnp.floor(level).astype(int)
        coarser = jnp.minimum(finer + 1, last)
        one, other = (
            self._bilinear(flat, jnp.asarray(first)[n], jnp.asarray(shapes)[n], at)
            for n in (finer, coarser)
        )
        return one + (level - finer) * (other - one)

    def _bilinear(
        self,
        flat: Float[Array, "texels 3"],
        first: Int[Array, ""],
        shape: Int[Array, "2"],
        at: Float[Array, "2"],
    ) -> Color:
        """Interpolates between the four nearest texels of one level, which starts at `first`."""
        # The centre of texel i is at (i + 1/2) / n.
        inside = at * shape - 0.5
        low = jnp.floor(inside)
        rest = inside - low
        weights = jnp.prod(jnp.where(_AROUND == 1, rest, 1 - rest), axis=1)
        # Wrapped while still floating: far away, the numbers are too large for integers.
        cells = low + _AROUND
        cells = jnp.mod(cells, shape) if self.repeat else jnp.clip(cells, 0, shape - 1)
        row, column = cells.astype(int).T
        return jnp.sum(weights[:, None] * flat[first + row * shape[1] + column], axis=0)


def halved(texels: Float[Array, "height width 3"]) -> list[Float[Array, "_ _ 3"]]:
    """Makes a mip map: the picture at full size, at half and so on, all with the same mean."""
    levels = [texels]
    while max(levels[-1].shape[:2]) > 1:
        shorter = _halve(levels[-1])
        levels.append(jnp.swapaxes(_halve(jnp.swapaxes(shorter, 0, 1)), 0, 1))
    return levels


def _halve(rows: Float[Array, "n m 3"]) -> Float[Array, "_ m 3"]:
    count = rows.shape[0]
    half = count // 2
    if count == 1:
        return rows
    if count % 2 == 0:
        return (rows[0::2] + rows[1::2]) / 2
    # Of n = 2 h + 1 rows, the new row i covers n / h of them:
    # ((h - i) row[2i] + h row[2i+1] + (i + 1) row[2i+2]) / n.
    i = jnp.arange(half, dtype=rows.dtype)[:, None, None]
    above, below = rows[:-1:2], rows[2::2]
    return ((half - i) * above + half * rows[1::2] + (i + 1) * below) / count
