"""Shaders to materials and textures of a file."""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .._typing import Array, Float, Vector
from ..images import as_bytes, Image, Linear
from ..models import ModelPart
from ..rays import Hit, no_light
from ..shaders import (
    AbstractShader,
    Constant,
    GGX,
    ImageTexture,
    InSpace,
    Lambert,
    OnSurface,
    Phong,
    VertexColor,
)


class Look(NamedTuple):
    """A shader as a metallic-roughness material: a colour, times a texture or vertices' colours."""

    base: np.ndarray = np.ones(3)
    texels: np.ndarray | None = None  # bytes
    repeat: bool = True
    uv: np.ndarray | None = None  # v upwards
    colors: np.ndarray | None = None
    metallic: float = 0.0
    roughness: float = 1.0
    unlit: bool = False


def look_of(shader: AbstractShader, part: ModelPart, texture_size: int) -> Look:
    """Returns the look of a surface's triangles."""
    if isinstance(shader, GGX):
        metallic, roughness = float(shader.metallic), float(shader.roughness)
        return _base(
            Look(metallic=metallic, roughness=roughness), shader.base_color, part, texture_size
        )
    if isinstance(shader, Lambert):
        return _base(Look(), shader.albedo, part, texture_size)
    if isinstance(shader, Phong):
        # The lobe of this roughness is about as wide; see `Phong`.
        roughness = (2 * float(shader.shininess) + 1) ** -0.25
        return _base(Look(roughness=roughness), shader.diffuse, part, texture_size)
    return _base(Look(unlit=True), shader, part, texture_size)


def _base(look: Look, shader: AbstractShader, part: ModelPart, texture_size: int) -> Look:
    """Adds a base colour: a number, a texture, or colours of the vertices."""
    if isinstance(shader, VertexColor):
        inner = _base(look, shader.shader, part, texture_size)
        product = part.colors if inner.colors is None else inner.colors * _or_white(part)
        return inner._replace(colors=product)
    if isinstance(shader, Constant):
        return look._replace(base=np.clip(np.asarray(shader.color, float), 0, 1), uv=part.uv)
    kinds = _coordinates(shader)
    if kinds != {OnSurface} or part.uv is None:
        return look._replace(colors=_vertex_colors(shader, part), uv=part.uv)
    if isinstance(shader, ImageTexture):
        size = np.asarray(shader.size)
        corner = -size / 2 if shader.corner is None else np.asarray(shader.corner)
        uv = (part.uv - corner) / size
        return look._replace(texels=_encoded(shader.texels), uv=uv, repeat=shader.repeat)
    lower, upper = part.uv.min(axis=0), part.uv.max(axis=0)
    extent = np.where(upper > lower, upper - lower, 1)
    texels = _baked(shader, lower, extent, texture_size)
    return look._replace(texels=texels, uv=(part.uv - lower) / extent, repeat=False)


def _or_white(part: ModelPart) -> np.ndarray:
    return np.ones((len(part.vertices), 3)) if part.colors is None else part.colors


def _coordinates(shader: Any) -> set[type]:
    """Returns the kinds of coordinates that a shader and those in it use."""
    if isinstance(shader, OnSurface | InSpace):
        return {type(shader)}
    if not isinstance(shader, eqx.Module):
        return set()
    parts = (getattr(shader, name) for name in shader.__dataclass_fields__)
    return set().union(*map(_coordinates, parts))


def _vertex_colors(shader: AbstractShader, part: ModelPart) -> np.ndarray:
    """Evaluates a shader at the vertices, in the shape's own frame."""
    normals = jnp.zeros_like(part.vertices) if part.normals is None else jnp.asarray(part.normals)
    uv = jnp.zeros((len(part.vertices), 2)) if part.uv is None else jnp.asarray(part.uv)

    def color(point: Vector, normal: Vector, uv: Float[Array, "2"]) -> Array:
        hit = Hit(1.0, point, normal, uv, jnp.zeros((2, 2)), 1.0)
        return shader(hit, -normal, no_light(point.dtype))

    return np.clip(np.asarray(jax.vmap(color)(jnp.asarray(part.vertices), normals, uv)), 0, 1)


def _baked(shader: AbstractShader, lower: np.ndarray, extent: np.ndarray, size: int) -> np.ndarray:
    """Evaluates a pattern on a grid of its coordinates; a texel is the mean over its area."""
    steps = (np.arange(size) + 0.5) / size
    grid = np.stack(np.meshgrid(steps, steps[::-1]), axis=-1).reshape(-1, 2)
    texel = jnp.asarray(np.diag(extent / size), jnp.float32)
    up = jnp.asarray([0.0, 0.0, 1.0])

    def color(uv: Float[Array, "2"]) -> Array:
        hit = Hit(1.0, jnp.zeros(3), up, uv, texel, 1.0)
        return shader(hit, -up, no_light(uv.dtype))

    colors = jax.vmap(color)(jnp.asarray(lower + grid * extent, jnp.float32))
    return _encoded(colors.reshape(size, size, 3))


def _encoded(texels: Any) -> np.ndarray:
    return as_bytes(Image(texels, space=Linear()))
