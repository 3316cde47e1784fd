"""Panoramas averaged over the lobes of rough surfaces, by a fixed linear map of the texels."""

import functools

import jax.numpy as jnp
import numpy as np

from .._typing import Array, Float, Vector
from ..numerics import dot, einsum, safe_norm


# The roughness of each level; a surface interpolates between them.
LEVELS = np.linspace(0, 1, 9)
# The most rows that a level's panorama needs: the wider its lobe is, the fewer.
_ROWS = (256, 64, 64, 32, 32, 16, 16, 16, 16)
# Directions of each lobe.
_COUNT = 32


def prefilter(texels: Float[Array, "height width 3"]) -> Float[Array, "all 3"]:
    """Averages a panorama over the lobe of every level, in every direction; levels in a row."""
    height, width, _ = texels.shape
    pyramid = [_shrink(texels, *level_shapes(height, width)[0])]
    while pyramid[-1].shape[0] > 1:
        rows, columns, _ = pyramid[-1].shape
        pyramid.append(_shrink(pyramid[-1], rows // 2, max(columns // 2, 1)))
    flat = jnp.concatenate([picture.reshape(-1, 3) for picture in pyramid])
    # Texel t of a level is sum_n w_n p_i(t,n), of the texels p of the whole pyramid.
    levels = [pyramid[0].reshape(-1, 3)]
    for indices, weights in _lobes(height, width):
        mean = einsum("n,tnc->tc", jnp.asarray(weights, flat.dtype), flat[indices])
        levels.append(mean)
    return jnp.concatenate(levels)


def look_up(
    levels: Float[Array, "all 3"], shapes: np.ndarray, directions: Float[Array, "levels 3"]
) -> Float[Array, "levels 3"]:
    """Interpolates every level between the four texels around its direction, in the panorama."""
    x, y, z = directions.T
    level = safe_norm(directions[:, :2])
    up = (x == 0) & (y == 0)
    azimuth = jnp.arctan2(y, jnp.where(up, -1, x))
    # The centre of texel i is at (i + 1/2) / n; rows go down, columns are a circle.
    row = (0.5 - jnp.arctan2(z, level) / jnp.pi) * shapes[:, 0] - 0.5
    column = (0.5 + azimuth / (2 * jnp.pi)) * shapes[:, 1] - 0.5
    first = np.concatenate([[0], np.cumsum(np.prod(shapes, axis=1))[:-1]])
    top, left = jnp.floor(row), jnp.floor(column)
    # Weights (1 - r, r) by rows times (1 - c, c) by columns, of the rests r and c.
    total = jnp.zeros_like(directions)
    for i, down in ((0, 1 - (row - top)), (1, row - top)):
        for j, right in ((0, 1 - (column - left)), (1, column - left)):
            at = jnp.clip(top + i, 0, shapes[:, 0] - 1).astype(int) * shapes[:, 1]
            at += _around(left + j, shapes[:, 1]).astype(int)
            total += (down * right)[:, None] * levels[first + at]
    return total


def _around(column: Float[Array, " levels"], width: np.ndarray) -> Float[Array, " levels"]:
    """Returns columns between 0 and the width, of those up to one beside them."""
    column = jnp.where(column < 0, column + width, column)
    return jnp.where(column >= width, column - width, column)


def dominant_directions(normal: Vector, eye: Vector) -> Float[Array, "levels 3"]:
    """Returns about where the light comes from that each level's roughness reflects to the eye."""
    # r = 2 (n . v) n - v
    mirrored = 2 * dot(normal, eye) * normal - eye
    # n + (r - n) (1 - a) (sqrt(1 - a) + a), with a = roughness^2: Lagarde and de Rousiers 2014.
    smooth = 1 - LEVELS**2
    share = jnp.asarray(smooth * (np.sqrt(smooth) + 1 - smooth), normal.dtype)
    return normal + share[:, None] * (mirrored - normal)


@functools.lru_cache(maxsize=8)
def level_shapes(height: int, width: int) -> np.ndarray:
    """Returns rows and columns of the levels of a panorama."""
    rows = [min(most, max(height, 16)) for most in _ROWS[1:]]
    most = _ROWS[0]
    # Level 0 is the picture itself, unless it is finer than its lookup needs to be.
    shrunk = (height, width) if height <= most else (most, max(width * most // height, 1))
    return np.array([shrunk, *((n, 2 * n) for n in rows)], np.int32)


def _shrink(texels: Float[Array, "h w 3"], height: int, width: int) -> Float[Array, "_ _ 3"]:
    """Averages a panorama over the areas on the sphere of fewer texels."""
    if texels.shape[:2] == (height, width):
        return texels
    # The height on the sphere is even in its area: z = sin(elevation).
    edges = lambda n: (1 - np.cos(np.pi * np.linspace(0, 1, n + 1))) / 2
    rows = _overlaps(edges(height), edges(texels.shape[0]))
    columns = _overlaps(np.linspace(0, 1, width + 1), np.linspace(0, 1, texels.shape[1] + 1))
    # Areas on the sphere are products of those of rows and columns.
    rows, columns = (jnp.asarray(x, texels.dtype) for x in (rows, columns))
    fewer = einsum("ab,bcd->acd", rows, texels)
    return einsum("ab,cbd->cad", columns, fewer)


def _overlaps(coarse: np.ndarray, fine: np.ndarray) -> np.ndarray:
    """Returns the parts of coarse intervals (rows) that fine ones (columns) cover."""
    # max(min(upper ends) - max(lower ends), 0) / length of the coarse one
    upper = np.minimum(coarse[1:, None], fine[None, 1:])
    lower = np.maximum(coarse[:-1, None], fine[None, :-1])
    return np.maximum(upper - lower, 0) / np.diff(coarse)[:, None]


@functools.lru_cache(maxsize=8)
def _lobes(height: int, width: int) -> tuple[tuple[np.ndarray, np.ndarray], ...]:
    """Returns the texels of the pyramid that each level's lobes read, and their weights."""
    shapes = [tuple(level_shapes(height, width)[0])]
    while shapes[-1][0] > 1:
        shapes.append((shapes[-1][0] // 2, max(shapes[-1][1] // 2, 1)))
    shapes = np.array(shapes)
    first = np.concatenate([[0], np.cumsum(np.prod(shapes, axis=1))[:-1]])
    result = []
    for roughness, (rows, columns) in zip(LEVELS[1:], level_shapes(height, width)[1:], strict=True):
        offsets, angles = _lobe(roughness**2)
        # A texel is pi / rows high: about as much as the part of the lobe that it stands for.
        finer = np.log2(np.sqrt(2 * angles) * shapes[0, 0] / np.pi)
        mip = np.clip(np.round(finer), 0, len(shapes) - 1).astype(int)
        lights = np.einsum("na,tac->tnc", offsets, _frames(rows, columns))
        elevation = np.arcsin(np.clip(lights[..., 2], -1, 1))
        azimuth = np.arctan2(lights[..., 1], lights[..., 0])
        high, wide = shapes[mip].T
        row = np.clip(np.floor((0.5 - elevation / np.pi) * high), 0, high - 1)
        column = np.floor((0.5 + azimuth / (2 * np.pi)) * wide) % wide
        indices = (first[mip] + row * wide + column).astype(np.int32)
        # Karis 2013: lights of the lobe weigh by n.l; n = v is the direction of the texel.
        result.append((indices, offsets[:, 2] / np.sum(offsets[:, 2])))
    return tuple(result)


def _lobe(alpha: float) -> tuple[np.ndarray, np.ndarray]:
    """Returns mirrored directions about the z axis, seen from there, and their solid angles."""
    # Half vectors of density D n.h: tan^2 = a^2 u / (1 - u), at even u, turned by golden angles.
    part = (np.arange(_COUNT) + 0.5) / _COUNT
    around = np.pi * (1 + 5**0.5) * np.arange(_COUNT)
    cosine = np.sqrt((1 - part) / (1 + (alpha**2 - 1) * part))
    sine = np.sqrt(1 - cosine**2)
    half = np.stack([sine * np.cos(around), sine * np.sin(around), cosine], axis=-1)
    lights = 2 * cosine[:, None] * half - [0, 0, 1]
    # With n = v, a light's density is D / 4, and n lights stand for the solid angle 4 / (n D) each.
    density = alpha**2 / (np.pi * (cosine**2 * (alpha**2 - 1) + 1) ** 2)
    above = lights[:, 2] > 0
    return lights[above], 4 / (_COUNT * density[above])


def _frames(rows: int, columns: int) -> np.ndarray:
    """Returns, for every texel, two unit vectors across its direction and the direction."""
    elevation = np.pi / 2 - np.pi * (np.arange(rows) + 0.5) / rows
    azimuth = -np.pi + 2 * np.pi * (np.arange(columns) + 0.5) / columns
    azimuth, elevation = (x.ravel() for x in np.meshgrid(azimuth, elevation))
    # v = (cos e cos a, cos e sin a, sin e), and east = dv/da / cos e
    east = np.stack([-np.sin(azimuth), np.cos(azimuth), 0 * azimuth], axis=-1)
    toward = np.cos(elevation)[:, None] * np.stack([np.cos(azimuth), np.sin(azimuth)], axis=-1)
    toward = np.concatenate([toward, np.sin(elevation)[:, None]], axis=-1)
    return np.stack([east, np.cross(toward, east), toward], axis=1)
