"""Highlights of lamps with a size, by linearly transformed cosines.

The lobe of GGX is about a cosine lobe, transformed by a matrix `M`; the part of it that a polygon
fills is the part of the cosine lobe that the polygon fills, transformed back (docs/surfaces.md,
"Lamps in highlights"). `M` keeps the height over the surface, so that the horizon stays where it
is: with `t` the unit vector along the surface away from the eye, and `(x, y, z)` along `t`, across
it and along the normal, `M (x, y, z) = (p x + s z, c y, z)`.
"""

import functools
import pathlib
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from .._typing import Array, Color, Float, Scalar, Vector
from ..numerics import dot, matmul, polygon_irradiance, safe_divide, safe_norm, safe_normalise
from ..rays import LampPolygons
from ._split_sum import look_up_lobe, SMOOTHEST


_TABLE = pathlib.Path(__file__).with_name("ltc.npy")
# How far from the middle of a polygon to its corners it is sampled, and the weight of the middle.
# For a square, 0.8 t^2 = 1 / 3 makes the mean of squares exact.
_TOWARDS_CORNERS, _MIDDLE = 0.62, 0.2


def lobe_part(
    normal: Vector, eye: Vector, roughness: Scalar, corners: Float[Array, "corners 3"]
) -> Scalar:
    """Returns the part of GGX's lobe that a polygon fills, from 0 to 1.

    The corners are relative to the point, counterclockwise as seen from there.
    """
    cosine = _cosine_of(normal, eye, roughness)
    outline = jax.vmap(cosine.flatten)(corners)
    return dot(polygon_irradiance(normal, outline), normal) / jnp.pi


def lamp_highlights(
    scattered: Callable[[Vector], Color],
    whole: Color,
    normal: Vector,
    eye: Vector,
    roughness: Scalar,
    lamps: LampPolygons,
) -> Color:
    """Computes what a lobe about as wide as that of GGX reflects of lamps.

    `scattered` is its BSDF by the direction of light, and `whole` what it reflects of even light.
    """
    cosine = _cosine_of(normal, eye, roughness)

    def reflected(corners: Float[Array, "corners 3"]) -> Color:
        # The polygon fills the part e / pi of the cosine lobe, with the irradiance vector e.
        outline = jax.vmap(cosine.flatten)(corners)
        vector = polygon_irradiance(normal, outline)
        part = jnp.clip(dot(vector, normal) / jnp.pi, 0, 1)
        # A small polygon is exact by the lobe itself, over the cosine that stands for it; one that
        # is all around, by the whole. part ((1 - part) mean(f / q) + part (f0 A + B))
        points, weights = _points(normal, safe_normalise(vector), outline)
        ratios = jax.vmap(lambda point: cosine.compare(scattered, point))(points)
        mean = safe_divide(matmul(weights, ratios), jnp.broadcast_to(jnp.sum(weights), (3,)))
        return part * ((1 - part) * mean + part * whole)

    parts = jax.vmap(reflected)(lamps.corners)
    return jnp.sum(parts * lamps.radiance, axis=0)


class _TransformedCosine(NamedTuple):
    """A cosine lobe about a normal, transformed by the matrix `M`."""

    normal: Vector
    away: Vector  # t, or zero where the eye is straight above, and p = c
    lean: Vector  # s t
    along: Scalar  # p
    across: Scalar  # c

    def flatten(self, vector: Vector) -> Vector:
        """Returns `M^-1 v`."""
        # M^-1 v = ((x - s z) / p, y / c, z): as all of it over c, and the rest along t.
        height = dot(self.normal, vector)
        level = vector - height * self.normal
        along = dot(self.away, level)
        rest = along * (1 / self.along - 1 / self.across) * self.away
        return level / self.across + rest - height / self.along * self.lean + height * self.normal

    def bend(self, vector: Vector) -> Vector:
        """Returns `M v`."""
        height = dot(self.normal, vector)
        level = vector - height * self.normal
        rest = dot(self.away, level) * (self.along - self.across) * self.away
        return self.across * level + rest + height * (self.lean + self.normal)

    def compare(self, scattered: Callable[[Vector], Color], point: Vector) -> Color:
        """Returns `f / q` for a direction `point` in front of the cosine lobe, both over `n.l`."""
        light = self.bend(point)
        length = safe_norm(light)
        # q = n.l / (pi |M^-1 l|^4 det M), with |M^-1 l| = 1 / |M point| for l = M point / |M point|
        squared = jnp.where(length > 0, length, 1) ** 2
        inverse = jnp.pi * (self.along / squared) * (self.across / squared)
        return scattered(safe_normalise(light)) * inverse


def _cosine_of(normal: Vector, eye: Vector, roughness: Scalar) -> _TransformedCosine:
    """Returns the transformed cosine that is most like the lobe of a roughness."""
    seen = jnp.clip(dot(normal, eye), _LEAST_COSINE, 1)
    tilt, along, across = look_up_lobe(_table(), roughness, seen)
    # s t = tilt / (n.v) (n (n.v) - v), and p = 2 a along (1 + s^2), c = 2 a across
    level = seen * normal - eye
    lean = tilt / seen * (level - dot(level, normal) * normal)
    alpha = jnp.maximum(roughness**2, SMOOTHEST)
    along = 2 * alpha * along * (1 + dot(lean, lean))
    return _TransformedCosine(normal, safe_normalise(lean), lean, along, 2 * alpha * across)


# The least cosine to the eye.
_LEAST_COSINE = 1e-4


def _points(
    normal: Vector, middle: Vector, outline: Float[Array, "corners 3"]
) -> tuple[Float[Array, "points 3"], Float[Array, " points"]]:
    """Returns directions within a polygon that stand for it, and weights that include `n.l`."""
    corners = jax.vmap(safe_normalise)(outline)
    toward = middle + _TOWARDS_CORNERS * (corners - middle)
    points = jax.vmap(safe_normalise)(jnp.concatenate([middle[None], toward]))
    # Corners count by the sides that meet there, so that those that repeat count once.
    sides = safe_norm(jnp.roll(corners, -1, axis=0) - corners)
    sides = sides + jnp.roll(sides, 1)
    total = jnp.sum(sides)
    shares = (1 - _MIDDLE) * safe_divide(sides, jnp.broadcast_to(total, sides.shape))
    weights = jnp.concatenate([jnp.full((1,), _MIDDLE, sides.dtype), shares])
    return points, weights * jnp.maximum(matmul(points, normal), 0)


@functools.lru_cache(maxsize=1)
def _table() -> Float[np.ndarray, "roughness seen numbers"]:
    """Returns tilt, width along and width across, which tests/support/fit_ltc.py fits.

    **Source:** Heitz et al. 2016, "Real-Time Polygonal-Light Shading with Linearly Transformed
    Cosines".
    """
    return np.load(_TABLE)
