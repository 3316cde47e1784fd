"""Colours, materials, textures and the sky of a MuJoCo model."""

from typing import Any

import jax.numpy as jnp
import numpy as np

from ..images import srgb_to_linear
from ..shaders import AbstractShader, ImageTexture, InSpace, Lambert
from ..shapes import HeightField, Plane, Rectangle


# MuJoCo's numbers: kinds of textures, and the roles of a material's textures that are colours.
_FLAT, _CUBE, _SKY = 0, 1, 2
_COLOR_ROLES = 1, 9  # rgb; rgba
# A geom that says no color of its own has these numbers.
_UNSAID = (0.5, 0.5, 0.5, 1.0)
# Rows of the panorama that a sky becomes.
_ROWS = 256


def as_light(rgb: Any) -> np.ndarray:
    """Decodes MuJoCo's colours, which it shows as they are, to linear light."""
    return np.asarray(srgb_to_linear(jnp.asarray(np.clip(rgb, 0, 1), jnp.float32)))


def look_of(
    model: Any, material: int, rgba: np.ndarray, size: np.ndarray, has_uv: bool
) -> tuple[AbstractShader, float]:
    """Returns the shader and the opacity of a geom or a site; `size` is half of its lengths."""
    if material >= 0 and tuple(rgba) == _UNSAID:
        rgba = model.mat_rgba[material]
    color, opacity = as_light(rgba[:3]), float(rgba[3])
    texture = -1 if material < 0 else _texture_of(model, material)
    if texture < 0:
        return Lambert(color), opacity
    texels = texels_of(model, texture)
    light = as_light(texels[..., :3] / 255.0) * color
    if model.tex_type[texture] != _FLAT:
        # The mean over all directions of a picture on a cube.
        return Lambert(light.mean(axis=(0, 1))), opacity
    repeat = np.maximum(model.mat_texrepeat[material], 1e-6)
    if has_uv:
        return Lambert(ImageTexture(light, 1 / repeat, [0.0, 0.0], repeat=True)), opacity
    # MuJoCo's s = repeat (x / half + 1) / 2, upright about the smallest x and y; endless planes
    # have a half of one.
    half = np.where(size[:2] > 0, size[:2], 1.0)
    scale = np.ones(2) if model.mat_texuniform[material] else half
    extent = 2 * scale / repeat
    picture = ImageTexture(light, extent, -half, repeat=True, coordinates=InSpace())
    return Lambert(picture), opacity


def _texture_of(model: Any, material: int) -> int:
    """Returns the number of a material's texture of colours; -1 for none."""
    # Before MuJoCo 3.2, a material had one texture.
    textures = np.atleast_1d(model.mat_texid[material])
    roles = _COLOR_ROLES if len(textures) > 1 else (0,)
    return next((int(textures[role]) for role in roles if textures[role] >= 0), -1)


def texels_of(model: Any, texture: int) -> np.ndarray:
    """Returns a texture's bytes, `height width channels`, of three channels or more."""
    shape = (
        *(int(x[texture]) for x in (model.tex_height, model.tex_width)),
        _channels(model, texture),
    )
    begin = int(model.tex_adr[texture])
    texels = model.tex_data[begin : begin + int(np.prod(shape))].reshape(shape)
    return texels if shape[2] >= 3 else np.repeat(texels[..., :1], 3, axis=2)


def _channels(model: Any, texture: int) -> int:
    return int(model.tex_nchannel[texture])


def sky_of(model: Any) -> ImageTexture | None:
    """Returns the sky as a panorama, by azimuth and elevation; `None` without one."""
    skies = np.flatnonzero(model.tex_type == _SKY)
    if not len(skies):
        return None
    texels = as_light(texels_of(model, int(skies[0]))[..., :3] / 255.0)
    side = texels.shape[1]
    faces = texels.reshape(-1, side, side, 3)
    rows = min(_ROWS, 2 * side)
    # Four places in each texel of the panorama.
    fine = lambda n: (np.arange(2 * n) + 0.5) / (2 * n)
    elevation, azimuth = np.meshgrid(
        np.pi * (0.5 - fine(rows)), np.pi * (2 * fine(2 * rows) - 1), indexing="ij"
    )
    flat = np.cos(elevation)
    x, y, z = flat * np.cos(azimuth), flat * np.sin(azimuth), np.sin(elevation)
    seen = _of_cube(faces, np.stack([x, z, -y], axis=-1))
    mean = seen.reshape(rows, 2, 2 * rows, 2, 3).mean(axis=(1, 3))
    corner = [-np.pi, -np.pi / 2]
    return ImageTexture(mean, [2 * np.pi, np.pi], corner, repeat=(True, False))


def _of_cube(faces: np.ndarray, direction: np.ndarray) -> np.ndarray:
    """Looks up a cube of six pictures; OpenGL's rule, of directions with y upwards.

    **Source:** the OpenGL specification, "Cube Map Texture Selection".
    """
    x, y, z = np.moveaxis(direction, -1, 0)
    axis = np.argmax(np.abs(direction), axis=-1)
    largest = np.take_along_axis(direction, axis[..., None], axis=-1)[..., 0]
    face = 2 * axis + (largest < 0)
    # s and t of +x, -x, +y, -y, +z, -z.
    across = np.choose(face, [-z, z, x, x, x, -x])
    down = np.choose(face, [-y, -y, z, -z, -y, -y])
    side = faces.shape[1]
    place = lambda v: np.clip(((v / np.abs(largest) + 1) / 2 * side).astype(int), 0, side - 1)
    return faces[np.minimum(face, len(faces) - 1), place(down), place(across)]


# Shapes whose coordinates are of a picture: meshes that have their own.
def takes_uv(shape: Any) -> bool:
    """Returns true for a mesh with coordinates."""
    flat = isinstance(shape, Plane | Rectangle | HeightField)
    return not flat and getattr(shape, "uv", None) is not None
