from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp

from .._typing import Array, Float, Scalar, Vector
from ..numerics import as_float_leaf, require_finite, require_positive, slab_coverage
from ..rays import by_pixel, Hit, Ray
from ._base import AbstractShape, Crossing, join_pieces, smooth_piece, within_reach
from ._plane import level_distance, upwards


class Rectangle(AbstractShape):
    """A rectangle in a plane of constant z; `uv` is in its units, from its centre.

    **Arguments:**

    - `center`: its middle.
    - `size`: along x and y; positive.
    """

    center: Vector = eqx.field(converter=as_float_leaf, default=(0.0, 0.0, 0.0))
    size: Float[Array, "2"] = eqx.field(converter=as_float_leaf, default=(1.0, 1.0))

    is_convex: ClassVar[bool] = True
    has_uv: ClassVar[bool] = True

    def __check_init__(self):
        require_positive(self, "size")
        require_finite(self, "center")

    def coverage(self, ray: Ray) -> Scalar:
        return self._cross(ray)[1]

    def pieces(self, ray: Ray) -> Hit:
        crossing, covered = self._cross(ray)
        return join_pieces(smooth_piece(ray, crossing, upwards, self._uv, covered))

    def _cross(self, ray: Ray) -> tuple[Crossing, Scalar]:
        (t, margins), (slope, slopes) = by_pixel(self._look, ray)
        crossing, sides = Crossing(t, slope), [slab_coverage(margins[i], slopes[i]) for i in (0, 1)]
        return crossing, sides[0] * sides[1] * within_reach(ray, crossing)

    def _look(self, origin: Vector, direction: Vector) -> tuple[Scalar, Float[Array, "2 2"]]:
        """Where a line meets the plane, and how far inside of the four edges, times its steepness:
        that is linear over the picture of a pinhole camera."""
        start, steepness = origin - self.center, jnp.abs(direction[2])
        ahead = -jnp.where(direction[2] < 0, -1.0, 1.0) * start[2]
        at = start[:2] * steepness + ahead * direction[:2]
        half = self.size / 2 * steepness
        t = level_distance(self.center[2], origin, direction)
        return t, jnp.stack([half + at, half - at], axis=1)

    def _uv(self, point: Vector) -> Float[Array, "2"]:
        return (point - self.center)[:2]
