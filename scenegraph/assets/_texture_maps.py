"""Shaders to textures of a file: those that are one, and patterns, which are baked."""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .._typing import Array, Float, Vector
from ..models import ModelPart
from ..rays import Hit, no_light
from ..shaders import AbstractShader, Constant, ImageTexture, InSpace, OnSurface, pair_of


class TextureMap(NamedTuple):
    """A picture of any numbers, and how it lies on the coordinates of a surface."""

    texels: np.ndarray  # height width 3, or 4 with opacity, row 0 at the top
    size: np.ndarray  # 2, v upwards, as in `ImageTexture`
    corner: np.ndarray
    repeat: tuple[bool, bool] = (False, False)
    mirror: tuple[bool, bool] = (False, False)

    def lies_like(self, other: "TextureMap") -> bool:
        """Returns true if the texels of both lie at the same places."""
        same = all(np.array_equal(a, b) for a, b in zip(self[1:3], other[1:3], strict=True))
        return same and self[3:] == other[3:] and self.texels.shape == other.texels.shape

    def as_shader(self) -> ImageTexture:
        """Returns the texture of bytes that are sRGB numbers."""
        return ImageTexture(self.texels, self.size, self.corner, self.repeat, mirror=self.mirror)


def map_of(shader: AbstractShader, part: ModelPart, size: int) -> TextureMap | None:
    """Returns a shader as a texture; `None` for what is no function of the coordinates."""
    if isinstance(shader, Constant):
        texels = np.asarray(shader.color, float).reshape(1, 1, 3)
        return TextureMap(texels, np.ones(2), np.zeros(2), (True, True))
    if part.uv is None or coordinates_of(shader) != {OnSurface}:
        return None
    if isinstance(shader, ImageTexture):
        own = texture_map(shader)
        return own._replace(texels=np.broadcast_to(own.texels, (*own.texels.shape[:2], 3)))
    return bake(shader, part, size)


def texture_map(texture: ImageTexture) -> TextureMap:
    """Returns the texels of a texture, of any channels, and how they lie."""
    size = np.asarray(texture.size, float)
    corner = -size / 2 if texture.corner is None else np.asarray(texture.corner, float)
    texels = np.asarray(texture.texels, float)
    return TextureMap(texels, size, corner, pair_of(texture.repeat), pair_of(texture.mirror))


def coordinates_of(shader: Any) -> set[type]:
    """Returns the kinds of coordinates that a shader and those in it use."""
    if isinstance(shader, OnSurface | InSpace):
        return {type(shader)}
    if not isinstance(shader, eqx.Module):
        return set()
    parts = (getattr(shader, name) for name in shader.__dataclass_fields__)
    return set().union(*map(coordinates_of, parts))


def bake(shader: AbstractShader, part: ModelPart, size: int) -> TextureMap:
    """Evaluates a pattern on a grid of its coordinates; a texel is the mean over its area."""
    assert part.uv is not None
    lower, upper = part.uv.min(axis=0), part.uv.max(axis=0)
    extent = np.where(upper > lower, upper - lower, 1)
    steps = (np.arange(size) + 0.5) / size
    grid = np.stack(np.meshgrid(steps, steps[::-1]), axis=-1).reshape(-1, 2)
    texel = jnp.asarray(np.diag(extent / size), jnp.float32)
    up = jnp.asarray([0.0, 0.0, 1.0])

    def color(uv: Float[Array, "2"]) -> Array:
        hit = Hit(1.0, jnp.zeros(3), up, uv, texel, 1.0)
        return shader(hit, -up, no_light(uv.dtype))

    colors = jax.vmap(color)(jnp.asarray(lower + grid * extent, jnp.float32))
    texels = np.asarray(colors, float).reshape(size, size, 3)
    return TextureMap(texels, extent.astype(float), lower.astype(float))


def vertex_colors(shader: AbstractShader, part: ModelPart) -> np.ndarray:
    """Evaluates a shader at the vertices, in the shape's own frame."""
    normals = jnp.zeros_like(part.vertices) if part.normals is None else jnp.asarray(part.normals)
    uv = jnp.zeros((len(part.vertices), 2)) if part.uv is None else jnp.asarray(part.uv)

    def color(point: Vector, normal: Vector, uv: Float[Array, "2"]) -> Array:
        hit = Hit(1.0, point, normal, uv, jnp.zeros((2, 2)), 1.0)
        return shader(hit, -normal, no_light(point.dtype))

    return np.asarray(jax.vmap(color)(jnp.asarray(part.vertices), normals, uv))


def transform_between(first: TextureMap, other: TextureMap) -> dict[str, Any]:
    """Returns a texture's `KHR_texture_transform` on the coordinates of the first; none if equal.

    Both have v downwards in the file, upwards in `TextureMap`.
    """
    # t2 = (t1 size1 + corner1 - corner2) / size2; downwards, v2 = c v1 + (1 - c - e).
    scale = first.size / other.size
    shift = (first.corner - other.corner) / other.size
    if np.array_equal(scale, [1, 1]) and not np.any(shift):
        return {}
    offset = [float(shift[0]), float(1 - scale[1] - shift[1])]
    return {"scale": scale.tolist(), "offset": offset}
