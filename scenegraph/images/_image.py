import abc
import os
import warnings
from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from .._typing import Array, Float, Int, VectorLike
from ..io import encode_png
from ..numerics import AbstractModule, as_float_leaf
from ._color import decoded, decoded_bytes, linear_to_srgb, srgb_to_linear
from ._files import read_pixels, write_pixels


class AbstractColorSpace(AbstractModule):
    """A map between numbers and the light that they stand for."""

    @abc.abstractmethod
    def to_linear(self, rgb: Float[Array, "*batch 3"]) -> Float[Array, "*batch 3"]:
        """Converts numbers to the light that they stand for."""

    @abc.abstractmethod
    def from_linear(self, rgb: Float[Array, "*batch 3"]) -> Float[Array, "*batch 3"]:
        """Converts light to the numbers that stand for it."""


class SRGB(AbstractColorSpace):
    """The numbers of ordinary picture files; fields fitted to pictures work in it.

    **Arguments:**

    - `stated`: false where this is no more than a guess; static.
    """

    stated: bool = eqx.field(static=True, default=True)

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
    if _is_floating(value):
        return as_float_leaf(value)
    return as_float_leaf(value) / np.iinfo(value.dtype).max


class Image(AbstractModule):
    """A picture: colours and, if they are known, opacity, depth and what else was requested.

    **Arguments:**

    - `rgb`: the colours, the background included, `height width 3`; row 0 is the top. Arrays of 8
      or 16 bits, as picture files have them, are divided by 255 or 65,535.
    - `alpha`: the opacity of what is in front of the background, `height width`; `None` if not
      known.
    - `depth`: the mean `t` along each pixel's ray (for a perspective camera: distance along its
      axis), `height width`; `None` if not known.
    - `space`: the colour space of `rgb`: `SRGB()` or `Linear()`. State it for floating numbers of
      your own: `fit` takes those without it to be in the scene's space, and says so; others take
      them for sRGB.
    - `normal`: the mean surface normal, of length one, in the world, `height width 3`; zero where
      nothing is; `None` if not requested.
    - `median_depth`: the `t` at which half of the opacity is reached, `height width`; `None` if
      not requested.
    - `overflow`: the number of surfaces or samples of each pixel that found no space in the
      integrator's budgets, `height width`; `None` if none can be missed.
    - `candidates`: the number of surfaces whose bounds each pixel may touch; `None` if not
      computed.
    - `albedo`: the mean base colour of what is seen, without light, in the colour space of `rgb`,
      `height width 3`; not multiplied by the opacity, and zero where nothing is. `None` if not
      requested, like all that follows.
    - `uv`: the coordinates on the surface `surface`, where the pixel shows it, `height width 2`;
      zero where there is none.
    - `position`: the mean position of what is seen, in the world, `height width 3`; zero where
      nothing is.
    - `surface`: the number of the surface that adds most to each pixel, `height width`, which
      `sg.surface_paths` names; -1 where none adds a thousandth. It has no derivatives.
    - `variance`: the variance of `rgb` as an estimate by random samples, `height width 3`: its
      square root is the standard error.
    """

    rgb: Float[Array, "height width 3"] = eqx.field(converter=from_bytes)
    alpha: Float[Array, "height width"] | None = None
    depth: Float[Array, "height width"] | None = None
    space: AbstractColorSpace = SRGB(stated=False)
    normal: Float[Array, "height width 3"] | None = None
    median_depth: Float[Array, "height width"] | None = None
    overflow: Int[Array, "height width"] | None = None
    candidates: Int[Array, "height width"] | None = None
    albedo: Float[Array, "height width 3"] | None = None
    uv: Float[Array, "height width 2"] | None = None
    position: Float[Array, "height width 3"] | None = None
    surface: Int[Array, "height width"] | None = None
    variance: Float[Array, "height width 3"] | None = None

    def __post_init__(self):
        # Before the converter: bytes are those of a file.
        if isinstance(self.space, SRGB) and not _is_floating(self.rgb):
            self.space = SRGB()

    @classmethod
    def load(cls, path: str | os.PathLike, *, background: VectorLike | None = None) -> "Image":
        """Loads a picture file.

        **Arguments:**

        - `path`: the path of a PNG, JPEG or other file that Pillow reads, whose numbers are sRGB;
          or of an OpenEXR (`.exr`, needs the extra `exr`) or Radiance HDR (`.hdr`) file, whose
          numbers are linear light.
        - `background`: the colour, in the picture's own numbers, that is seen through what is not
          opaque; black by default, as behind a `Scene`. Keyword only argument.

        **Returns:**

        The picture, with its opacity if the file has one, and with its colour space.

        **Errors:**

        `FileError` for a file that is missing, damaged, or of another kind.
        """
        rgb, alpha, linear = read_pixels(path)
        if alpha is not None:
            behind = np.zeros(3) if background is None else np.asarray(background)
            # alpha rgb + (1 - alpha) background
            rgb = rgb * alpha[..., None] + (1 - alpha[..., None]) * behind
        opacity = None if alpha is None else as_float_leaf(alpha)
        return cls(as_float_leaf(rgb), opacity, space=Linear() if linear else SRGB())

    def save(self, path: str | os.PathLike) -> None:
        """Saves the colours, encoded once, whatever space they are in.

        **Arguments:**

        - `path`: the path of the file; its folder exists. A `.png`, `.jpg` or other ordinary file
          gets sRGB numbers, clipped and rounded to 8 bits; `.exr` (with the depth, if known) and
          `.hdr` files get linear light. Pixels that are NaN are counted in a warning.

        **Errors:**

        `FileError` for an ending that is none of these.
        """
        linear = np.asarray(self.space.to_linear(self.rgb))
        if missing := int(np.sum(np.any(np.isnan(linear), axis=-1))):
            what = f"{missing} of {linear[..., 0].size} pixels are NaN; 8 bits show them black"
            warnings.warn(f"Image.save: {path}: {what}", stacklevel=2)
        depth = None if self.depth is None else np.asarray(self.depth)
        write_pixels(path, as_bytes(self), linear, depth)

    def _repr_png_(self) -> bytes | None:
        """Shows the picture in a notebook."""
        return None if isinstance(self.rgb, Tracer) else encode_png(as_bytes(self))

    @property
    def height(self) -> int:
        """The number of rows."""
        return self.rgb.shape[-3]

    @property
    def width(self) -> int:
        """The number of columns."""
        return self.rgb.shape[-2]


def _is_floating(value: Any) -> bool:
    """Returns true for floating numbers, false for the bytes of a file."""
    return getattr(value, "dtype", None) not in (np.uint8, np.uint16)


def as_light(value: Any) -> Any:
    """Converts an `Image` or bytes to linear light, and anything else to an array."""
    if isinstance(value, np.ndarray) and value.dtype == np.uint8 and value.ndim == 3:
        return decoded_bytes(value)
    if not _is_floating(value):
        value = Image(value)
    if not isinstance(value, Image):
        return as_float_leaf(value)
    return decoded(value.rgb) if isinstance(value.space, SRGB) else value.space.to_linear(value.rgb)


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

    A numpy array `height width 3` of uint8; NaN is 0.
    """
    shown = jnp.nan_to_num(jnp.clip(srgb_numbers(image), 0, 1))
    return np.asarray(jnp.round(255 * shown)).astype(np.uint8)


def srgb_numbers(image: Image) -> Float[Array, "height width 3"]:
    """Converts a picture's colours to sRGB numbers, neither clipped nor rounded."""
    if isinstance(image.space, SRGB):
        return image.rgb
    return SRGB().from_linear(image.space.to_linear(image.rgb))
