import equinox as eqx
import jax.numpy as jnp

from .._typing import Array, Float, Scalar, Vector
from ..numerics import as_float_leaf, require_finite, require_positive, safe_norm, slab_coverage
from ..rays import pixel_jvp, Ray
from ..transforms import Ball
from ._base import Crossing, within_reach
from ._bounds import AbstractBounded
from ._plane import AbstractLevelShape, level_distance


class Rectangle(AbstractLevelShape, AbstractBounded):
    """A rectangle in a plane of constant z; `uv` is in its units, from its centre.

    **Arguments:**

    - `center`: the centre.
    - `size`: the lengths along x and y; positive.
    """

    center: Vector = eqx.field(converter=as_float_leaf, default=(0.0, 0.0, 0.0))
    size: Float[Array, "2"] = eqx.field(converter=as_float_leaf, default=(1.0, 1.0))

    def __check_init__(self):
        require_positive(self, "size")
        require_finite(self, "center")

    def bounding_ball(self) -> Ball:
        return Ball(self.center, safe_norm(self.size) / 2)

    def cross(self, ray: Ray) -> tuple[Crossing, Scalar]:
        (t, margins), (gradient, d_margins) = pixel_jvp(self._intersect_line, ray)
        sides = [slab_coverage(margins[i], d_margins[i]) for i in (0, 1)]
        crossing = Crossing(t, gradient)
        return crossing, sides[0] * sides[1] * within_reach(ray, crossing)

    def _intersect_line(
        self, origin: Vector, direction: Vector
    ) -> tuple[Scalar, Float[Array, "2 2"]]:
        """Intersects a line with the plane; returns the margins to the four edges as well."""
        # With the offset q from the centre at the plane, the margins are half - q and half + q,
        # times |d_z|: that makes them linear over the picture of a pinhole camera.
        start, steepness = origin - self.center, jnp.abs(direction[2])
        ahead = -jnp.where(direction[2] < 0, -1.0, 1.0) * start[2]
        at = start[:2] * steepness + ahead * direction[:2]
        half = self.size / 2 * steepness
        t = level_distance(self.center[2], origin, direction)
        return t, jnp.stack([half + at, half - at], axis=1)
