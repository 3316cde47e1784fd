import abc
from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from .._typing import Array, Float, Int
from ..numerics import AbstractModule, as_float_leaf
from ._color import linear_to_srgb, srgb_to_linear


class AbstractColorSpace(AbstractModule):
    """A map between numbers and the light that they stand for."""

    @abc.abstractmethod
    def to_linear(self, rgb: Float[Array, "*batch 3"]) -> Float[Array, "*batch 3"]:
        """Converts numbers to the light that they stand for.

        **Arguments:**

        - `rgb`: numbers in this space, `*batch 3`.

        **Returns:**

        Linear light, `*batch 3`.
        """

    @abc.abstractmethod
    def from_linear(self, rgb: Float[Array, "*batch 3"]) -> Float[Array, "*batch 3"]:
        """Converts light to the numbers that stand for it.

        **Arguments:**

        - `rgb`: linear light, `*batch 3`.

        **Returns:**

        Numbers in this space, `*batch 3`.
        """


class SRGB(AbstractColorSpace):
    """The numbers of ordinary picture files; fields fitted to pictures work in it."""

    def to_linear(self, rgb: Float[Array, "*batch 3"]) -> Float[Array, "*batch 3"]:
        return srgb_to_linear(rgb)

    def from_linear(self, rgb: Float[Array, "*batch 3"]) -> Float[Array, "*batch 3"]:
        return linear_to_srgb(rgb)


class Linear(AbstractColorSpace):
    """Numbers proportional to light; scenes with lights work in it."""

    def to_linear(self, rgb: Float[Array, "*batch 3"]) -> Float[Array, "*batch 3"]:
        return rgb

    def from_linear(self, rgb: Float[Array, "*batch 3"]) -> Float[Array, "*batch 3"]:
        return rgb


def from_bytes(value: Any) -> Any:
    """Converts unsigned integers of 8 or 16 bits to numbers from 0 to 1, and keeps others."""
    kind = getattr(value, "dtype", None)
    if kind in (np.uint8, np.uint16):
        return as_float_leaf(value) / np.iinfo(kind).max
    return as_float_leaf(value)


class Image(AbstractModule):
    """A picture: colours and, if they are known, opacity, depth and normals.

    **Arguments:**

    - `rgb`: the colours, the background included, `height width 3`; row 0 is the top. Arrays of 8
      or 16 bits, as picture files have them, are divided by 255 or 65,535.
    - `alpha`: the opacity of what is in front of the background, `height width`; `None` if not
      known.
    - `depth`: the mean `t` along each pixel's ray (for a perspective camera: distance along its
      axis), `height width`; `None` if not known.
    - `space`: the colour space of `rgb`.
    - `normal`: the mean surface normal, of length one, in the world, `height width 3`; zero where
      nothing is; `None` if not requested.
    - `median_depth`: the `t` at which half of the opacity is reached, `height width`; `None` if
      not requested.
    - `overflow`: the number of surfaces or samples of each pixel that found no space in the
      integrator's budgets, `height width`; `None` if none can be missed.
    - `candidates`: the number of surfaces that each pixel's bundle of rays may touch; `None` if not
      computed.
    """

    rgb: Float[Array, "height width 3"] = eqx.field(converter=from_bytes)
    alpha: Float[Array, "height width"] | None = None
    depth: Float[Array, "height width"] | None = None
    space: AbstractColorSpace = SRGB()
    normal: Float[Array, "height width 3"] | None = None
    median_depth: Float[Array, "height width"] | None = None
    overflow: Int[Array, "height width"] | None = None
    candidates: Int[Array, "height width"] | None = None

    @property
    def height(self) -> int:
        """The number of rows."""
        return self.rgb.shape[0]

    @property
    def width(self) -> int:
        """The number of columns."""
        return self.rgb.shape[1]


def side_by_side(images: Sequence[Image]) -> np.ndarray:
    """Puts several pictures of one height in a row, grey lines between them.

    **Arguments:**

    - `images`: the pictures, from left to right.

    **Returns:**

    A numpy array `height width 3` of uint8.
    """
    line = np.full((images[0].height, max(2, images[0].width // 50), 3), 128, np.uint8)
    first, *others = [as_bytes(image) for image in images]
    return np.concatenate([first, *(part for other in others for part in (line, other))], axis=1)


def as_bytes(image: Image) -> np.ndarray:
    """Converts a picture to what a file holds: sRGB numbers, clipped and rounded to 8 bits.

    **Arguments:**

    - `image`: the picture, in any colour space.

    **Returns:**

    A numpy array `height width 3` of uint8.
    """
    return np.asarray(jnp.round(255 * jnp.clip(srgb_numbers(image), 0, 1))).astype(np.uint8)


def srgb_numbers(image: Image) -> Float[Array, "height width 3"]:
    """Converts a picture's colours to sRGB numbers, neither clipped nor rounded."""
    if isinstance(image.space, SRGB):
        return image.rgb
    return SRGB().from_linear(image.space.to_linear(image.rgb))
