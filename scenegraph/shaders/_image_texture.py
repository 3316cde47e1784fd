import os
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp

from .._typing import Array, Color, Float, PyTree, Vector
from ..images import as_light, Image
from ..numerics import as_float_leaf, require_finite, require_positive, unfreeze
from ..rays import Hit, Irradiance
from ._base import AbstractShader
from ._coordinates import AbstractCoordinates, OnSurface
from ._pyramid import build_levels, Pyramid


# Channels of what is no colour: the coefficients of a `ViewDependent`, three a harmonic.
_OF_VIEWS = (12, 27, 48)


def _as_corner(value: Any) -> Any:
    """Converts a corner to a leaf; `None` stays."""
    return None if value is None else as_float_leaf(value)


class ImageTexture(AbstractShader):
    """A picture, interpolated between its texels, and averaged where a pixel covers many of them.

    The average comes from a mip map, a pyramid of halved pictures, by interpolation between the two
    nearest levels, at several places along the long axis of the pixel's footprint. The texels of
    the picture itself are leaves.

    **Arguments:**

    - `texels`: the picture, with its top row first. An `Image` gives its linear light; pass its
      `rgb` for its own numbers. An array of 8 or 16 bits is read as the sRGB numbers of a file.
      Floating numbers stay as they are; one channel is grey.
    - `size`: the picture's extent to the right and upwards, in units of the coordinates.
    - `corner`: the position of the picture's lower left corner, in the coordinates; `None` for a
      picture about their origin, which on a `Rectangle` or `Disk` of this size is the centre.
    - `repeat`: if true, the picture tiles the plane; else its border goes on for ever. A pair says
      it for the first and the second coordinate. Static.
    - `coordinates`: `OnSurface()`, or `InSpace()`, of which x and y are used.
    - `mirror`: if true, every second tile of what repeats is mirrored; a pair as in `repeat`.
      Static.
    - `probes`: the number of places along the footprint's long axis at which the pyramid is looked
      up, which keeps surfaces sharp that are seen at a slant; 1 for none; static.

    **Source:** Williams 1983, "Pyramidal Parametrics"; McCormack et al. 1999, "Feline: Fast
    Elliptical Lines for Anisotropic Texture Mapping" (probes along the long axis).
    """

    texels: Float[Array, "height width channels"] = eqx.field(converter=as_light)
    size: Float[Array, "2"] = eqx.field(converter=as_float_leaf, default=(1.0, 1.0))
    corner: Float[Array, "2"] | None = eqx.field(converter=_as_corner, default=None)
    repeat: bool | tuple[bool, bool] = eqx.field(static=True, default=False)
    coordinates: AbstractCoordinates = OnSurface()
    mirror: bool | tuple[bool, bool] = eqx.field(static=True, default=False)
    probes: int = eqx.field(static=True, default=4)

    needs_light_behind: ClassVar[bool] = False

    @classmethod
    def load(
        cls, path: str | os.PathLike, *, linear: bool = False, **options: Any
    ) -> "ImageTexture":
        """Loads a picture file as a texture.

        **Arguments:**

        - `path`: the path of the file; see `Image.load`. What is not opaque lies over black.
        - `linear`: if true, the texels are the numbers of the file, as for normals, roughness and
          whatever else is no colour; if false, its light. Keyword only, as is all that follows.
        - `options`: the other arguments of `ImageTexture`.

        **Returns:**

        The texture, in linear light.

        **Errors:**

        `FileError` for a file that is missing, damaged, or of another kind.
        """
        image = Image.load(path)
        return cls(image.rgb if linear else image, **options)

    def __check_init__(self):
        require_positive(self, "size")
        require_finite(self, "texels", *(["corner"] if self.corner is not None else []))
        shape = unfreeze(self.texels).shape
        if shape[2] not in (1, 3, *_OF_VIEWS):
            raise TypeError(f"`ImageTexture.texels` must have one or three channels; got {shape}.")
        if 0 in shape:
            raise ValueError(f"`ImageTexture.texels` must have at least one texel; got {shape}.")
        if self.probes < 1:
            raise ValueError(f"`ImageTexture.probes` must be at least 1; got {self.probes}.")

    def prepare(self) -> "PreparedTexture":
        """Builds the pyramid, which all rays of a picture share; the colours are the same."""
        height, width = unfreeze(self.texels).shape[:2]
        return PreparedTexture(
            # Beneath a `Frozen`, if there is one.
            jax.tree.map(build_levels, self.texels),
            self.size,
            self.corner,
            self.coordinates,
            (height, width),
            pair_of(self.repeat),
            pair_of(self.mirror),
            self.probes,
        )

    def __call__(self, hit: Hit, view: Vector, lights: Irradiance) -> Color:
        return self.prepare()(hit, view, lights)

    def average(self, hit: Hit) -> Float[Array, " channels"]:
        """Averages all channels over a pixel."""
        return self.prepare().average(hit)


class PreparedTexture(AbstractShader):
    """An `ImageTexture` with its pyramid."""

    texels: Float[Array, "texels channels"]  # of all levels, in one row
    # Two numbers each, or those of every copy: `prepare_textures` sees nodes before copies are cut.
    size: PyTree
    corner: PyTree
    coordinates: AbstractCoordinates
    shape: tuple[int, int] = eqx.field(static=True)
    repeat: tuple[bool, bool] = eqx.field(static=True)
    mirror: tuple[bool, bool] = eqx.field(static=True)
    probes: int = eqx.field(static=True)

    needs_light_behind: ClassVar[bool] = False

    def __call__(self, hit: Hit, view: Vector, lights: Irradiance) -> Color:
        del view, lights
        return as_three(self.average(hit))

    def average(self, hit: Hit) -> Float[Array, " channels"]:
        """Averages all channels over a pixel."""
        position, derivatives = self.coordinates(hit)
        corner = -self.size / 2 if self.corner is None else self.corner
        # Parts of the picture's extent; footprints are in texels. Rows go down, against `up`.
        right, up = (position[:2] - corner) / self.size
        extent = jnp.asarray(self.shape[::-1], position.dtype)
        d_right, d_up = derivatives[:2] * (extent / self.size)[:, None]
        at, footprint = jnp.stack([1 - up, right]), jnp.stack([-d_up, d_right])
        pyramid = Pyramid(self.texels, self.shape, _turned(self.repeat), _turned(self.mirror))
        return pyramid.average(at, footprint, self.probes)


def as_three(color: Float[Array, " channels"]) -> Color:
    """Returns a colour of three channels, or of one that is grey."""
    if color.shape[0] in _OF_VIEWS:
        raise TypeError(
            f"a texture of {color.shape[0]} channels is no colour; it is for `ViewDependent.terms`."
        )
    return jnp.broadcast_to(color, (3,))


def pair_of(setting: bool | tuple[bool, bool]) -> tuple[bool, bool]:
    """Returns a setting for both coordinates."""
    return (setting, setting) if isinstance(setting, bool) else setting


def _turned(pair: tuple[bool, bool]) -> tuple[bool, bool]:
    """Returns what holds downwards and to the right, of what holds for u and v."""
    return pair[1], pair[0]


def prepare_textures(tree: PyTree) -> PyTree:
    """Builds the pyramids of all textures in a tree, once a picture.

    Those whose texels differ between copies of one node stay as they are.
    """

    def prepared(node: Any) -> Any:
        ready = _is_texture(node) and eqx.is_array(unfreeze(node.texels))
        return node.prepare() if ready else node

    # Most trees have none, and are not made anew.
    return jax.tree.map(prepared, tree, is_leaf=_is_texture) if has_texture(tree) else tree


def has_texture(tree: PyTree) -> bool:
    """Returns true if there is a texture in a tree."""
    return any(map(_is_texture, jax.tree.leaves(tree, is_leaf=_is_texture)))


def _is_texture(node: Any) -> bool:
    return isinstance(node, ImageTexture)
