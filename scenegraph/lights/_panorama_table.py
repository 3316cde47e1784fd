"""Panoramas for random paths: radiance by direction, and directions chosen by luminance."""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp

from .._typing import Array, Color, Float, Scalar, Vector
from ..numerics import safe_norm
from ..transforms import AbstractTransform


# The part of all directions that are chosen evenly, whatever the luminance.
_EVEN = 0.02
# The luminance of linear colours, as in Rec. 709.
_LUMINANCE = (0.2126, 0.7152, 0.0722)


class PanoramaTable(NamedTuple):
    """A panorama, and the chances of its texels."""

    texels: Float[Array, "height width 3"]
    rows: Float[Array, " height"]  # the chance of all rows down to the end of each
    columns: Float[Array, "height width"]  # of a row, that of all texels up to the end of each
    # Rotations of the panorama and of directions, to the world and back.
    turned: Float[Array, "3 3"]


class PanoramaSample(NamedTuple):
    """A random direction to a panorama, its radiance, and its density by solid angle."""

    direction: Vector
    radiance: Color
    density: Scalar


def tabulate_panorama(
    texels: Float[Array, "height width 3"], frames: tuple[AbstractTransform, ...]
) -> PanoramaTable:
    """Computes the chances of texels: luminance times solid angle, without derivatives."""
    height, width, _ = texels.shape
    fixed = jax.lax.stop_gradient(texels)
    luminance = jnp.maximum(fixed @ jnp.asarray(_LUMINANCE, fixed.dtype), 0)
    # Radiance is interpolated between the middles of texels: what lies beside a bright one shines.
    sides = jnp.roll(luminance, 1, 1) + jnp.roll(luminance, -1, 1)
    above = jnp.concatenate([luminance[:1], luminance[:-1]])
    below = jnp.concatenate([luminance[1:], luminance[-1:]])
    spread = luminance / 2 + (sides + above + below) / 8
    powers = spread * _bands(height, fixed.dtype)[:, None]
    even = jnp.broadcast_to(_bands(height, fixed.dtype)[:, None] / (2 * width), powers.shape)
    total = jnp.sum(powers)
    chances = jnp.where(
        total > 0, _EVEN * even + (1 - _EVEN) * powers / jnp.where(total > 0, total, 1), even
    )
    by_row = jnp.sum(chances, axis=1)
    rows, columns = jnp.cumsum(by_row), jnp.cumsum(chances / by_row[:, None], axis=1)
    basis = jnp.eye(3, dtype=texels.dtype)
    for frame in reversed(frames):
        basis = jax.vmap(frame.direction)(basis)
    basis = basis / safe_norm(basis)[:, None]
    return PanoramaTable(texels, rows / rows[-1], columns / columns[:, -1:], basis)


def _bands(height: int, dtype: jnp.dtype) -> Float[Array, " height"]:
    """Returns how much the sine of the elevation falls over each row, from 1 to -1."""
    edges = jnp.cos(jnp.arange(height + 1, dtype=dtype) * (math.pi / height))
    return edges[:-1] - edges[1:]


def panorama_radiance(table: PanoramaTable, direction: Vector) -> Color:
    """Interpolates the radiance from a direction, a unit vector in the world."""
    height, width, _ = table.texels.shape
    right, down = _place(table, direction)
    x, y = right * width - 0.5, jnp.clip(down * height - 0.5, 0, height - 1)
    left, top = jnp.floor(x), jnp.minimum(jnp.floor(y), max(height - 2, 0))
    across, along = x - left, y - top
    row, column = top.astype(jnp.int32), left.astype(jnp.int32)
    below = jnp.minimum(row + 1, height - 1)
    flat = table.texels.reshape(-1, 3)
    texel = lambda row, column: flat[row * width + column % width]
    line = lambda row: (1 - across) * texel(row, column) + across * texel(row, column + 1)
    return (1 - along) * line(row) + along * line(below)


def panorama_density(table: PanoramaTable, direction: Vector) -> Scalar:
    """Computes the density by solid angle with which a direction is chosen."""
    height, width, _ = table.texels.shape
    right, down = _place(table, direction)
    row = jnp.clip(jnp.floor(down * height).astype(jnp.int32), 0, height - 1)
    column = jnp.clip(jnp.floor(right * width).astype(jnp.int32), 0, width - 1)
    return _density_of_texel(table, row, column)


def sample_panorama(table: PanoramaTable, uniform: Float[Array, "2"]) -> PanoramaSample:
    """Chooses a direction, about as often as light comes from there."""
    height, width, _ = table.texels.shape
    row, down = _find(table.rows, jnp.zeros((), jnp.int32), height, uniform[0])
    start = row * width
    column, right = _find(table.columns.reshape(-1), start, width, uniform[1])
    # Even by solid angle within the texel: the sine of the elevation falls evenly.
    edge = lambda row: jnp.cos(row.astype(right.dtype) * (math.pi / height))
    up = edge(row) + down * (edge(row + 1) - edge(row))
    level = jnp.sqrt(jnp.maximum(1 - up**2, 0))
    around = 2 * math.pi * ((column.astype(right.dtype) + right) / width) - math.pi
    own = jnp.stack([level * jnp.cos(around), level * jnp.sin(around), up])
    direction = jnp.sum(own[:, None] * table.turned, axis=0)
    density = _density_of_texel(table, row, column)
    return PanoramaSample(direction, panorama_radiance(table, direction), density)


def _place(table: PanoramaTable, direction: Vector) -> tuple[Scalar, Scalar]:
    """Returns how far to the right and down a direction looks, from 0 to 1."""
    own = jnp.sum(table.turned * direction, axis=1)
    x, y, z = own
    pole = (x == 0) & (y == 0)
    azimuth = jnp.arctan2(jnp.where(pole, 0, y), jnp.where(pole, 1, x))
    across = jnp.sqrt(jnp.where(pole, 1, x**2 + y**2))
    elevation = jnp.arctan2(z, jnp.where(pole, 0, across))
    return 0.5 + azimuth / (2 * math.pi), 0.5 - elevation / math.pi


def _density_of_texel(table: PanoramaTable, row: Array, column: Array) -> Scalar:
    height, width, _ = table.texels.shape
    columns = table.columns.reshape(-1)
    before = lambda table, place, first: jnp.where(first, 0, table[jnp.maximum(place - 1, 0)])
    of_row = table.rows[row] - before(table.rows, row, row == 0)
    place = row * width + column
    of_column = columns[place] - before(columns, place, column == 0)
    # The solid angle of a texel: the fall of the sine times 2 pi / w.
    edge = lambda row: jnp.cos(row.astype(table.rows.dtype) * (math.pi / height))
    angle = (edge(row) - edge(row + 1)) * (2 * math.pi / width)
    return of_row * of_column / angle


def _find(
    table: Float[Array, " all"], start: Array, count: int, uniform: Scalar
) -> tuple[Array, Scalar]:
    """Finds the first of some numbers above a random one, and where between its ends that is."""

    def halve(_: Array, ends: tuple[Array, Array]) -> tuple[Array, Array]:
        low, high = ends
        middle = (low + high) // 2
        is_above = table[start + middle] > uniform
        done = low >= high
        low = jnp.where(done | is_above, low, middle + 1)
        return low, jnp.where(done | ~is_above, high, middle)

    ends = jnp.zeros((), jnp.int32), jnp.full((), count - 1, jnp.int32)
    place, _ = jax.lax.fori_loop(0, max(count - 1, 0).bit_length(), halve, ends)
    end = table[start + place]
    begin = jnp.where(place > 0, table[start + jnp.maximum(place - 1, 0)], 0)
    share = (uniform - begin) / jnp.where(end > begin, end - begin, 1)
    return place, jnp.clip(share, 0, 1)
