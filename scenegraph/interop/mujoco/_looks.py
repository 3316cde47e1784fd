"""Colours, materials, textures and the sky of a MuJoCo model."""

from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from ..._typing import Color, Vector
from ...images import as_color, srgb_to_linear
from ...numerics import dot, require_not_negative
from ...rays import Hit, Irradiance
from ...shaders import (
    AbstractAlbedoShader,
    AbstractShader,
    albedo_of,
    as_shader,
    ImageTexture,
    incident,
    InSpace,
)
from ...shapes import HeightField, Plane, Rectangle


# MuJoCo's numbers: kinds of textures, and the roles of a material's textures that are colours.
_FLAT, _CUBE, _SKY = 0, 1, 2
_COLOR_ROLES = 1, 9  # rgb; rgba
# A geom that says no color of its own has these numbers.
_UNSAID = (0.5, 0.5, 0.5, 1.0)
# Rows of the panorama that a sky becomes.
_ROWS = 512


class Headlit(AbstractAlbedoShader):
    """A matt surface, lit also by a lamp at the eye that casts no shadow: MuJoCo's headlight.

    **Arguments:**

    - `albedo`: a shader or a colour: the part of the light that is scattered.
    - `headlight`: the part of a white surface's brightness that the headlight gives one that faces
      the eye.
    """

    albedo: AbstractShader = eqx.field(converter=as_shader)
    headlight: Color = eqx.field(converter=as_color, default=(0.0, 0.0, 0.0))

    needs_light: ClassVar[bool] = False
    needs_light_behind: ClassVar[bool] = False

    def __check_init__(self):
        require_not_negative(self, "headlight")

    def __call__(self, hit: Hit, view: Vector, lights: Irradiance) -> Color:
        # albedo (sum of E_l max(n . l, 0) / pi + even light + headlight max(-n . v, 0))
        facing = jnp.maximum(-dot(hit.normal, view), 0)
        light = incident(hit, lights) / jnp.pi + lights.ambient + facing * self.headlight
        return self.albedo(hit, view, lights) * light

    def albedo_at(self, hit: Hit, view: Vector) -> Color:
        return albedo_of(self.albedo, hit, view)


def headlight_of(model: Any) -> np.ndarray:
    """Returns the headlight's light, zero where it is off."""
    head = model.vis.headlight
    return as_light(head.diffuse) if head.active else np.zeros(3)


def as_light(rgb: Any) -> np.ndarray:
    """Decodes MuJoCo's colours, which it shows as they are, to linear light."""
    return np.asarray(srgb_to_linear(jnp.asarray(np.clip(rgb, 0, 1), jnp.float32)))


def look_of(
    model: Any,
    material: int,
    rgba: np.ndarray,
    size: np.ndarray,
    has_uv: bool,
    headlight: np.ndarray,
) -> tuple[AbstractShader, float]:
    """Returns the shader and the opacity of a geom or a site; `size` is half of its lengths."""
    if material >= 0 and tuple(rgba) == _UNSAID:
        rgba = model.mat_rgba[material]
    color, opacity = as_light(rgba[:3]), float(rgba[3])
    texture = -1 if material < 0 else _texture_of(model, material)
    if texture < 0:
        return Headlit(color, headlight), opacity
    texels = texels_of(model, texture)
    light = as_light(texels[..., :3] / 255.0) * color
    if model.tex_type[texture] != _FLAT:
        # The mean over all directions of a picture on a cube.
        return Headlit(light.mean(axis=(0, 1)), headlight), opacity
    repeat = np.maximum(model.mat_texrepeat[material], 1e-6)
    if has_uv:
        picture = ImageTexture(light, 1 / repeat, [0.0, 0.0], repeat=True)
        return Headlit(picture, headlight), opacity
    # MuJoCo's s = repeat (x / half + 1) / 2, upright about the smallest x and y; endless planes
    # have a half of one.
    half = np.where(size[:2] > 0, size[:2], 1.0)
    scale = np.ones(2) if model.mat_texuniform[material] else half
    extent = 2 * scale / repeat
    picture = ImageTexture(light, extent, -half, repeat=True, coordinates=InSpace())
    return Headlit(picture, headlight), opacity


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
