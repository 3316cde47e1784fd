from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp

from .._typing import Array, Float, Scalar, Vector
from ..numerics import (
    as_float_leaf,
    disk_coverage,
    dot,
    require_finite,
    require_positive,
    safe_normalise,
)
from ..rays import pixel_jvp, Ray
from ..transforms import Ball
from ._angles import azimuth, elevation
from ._base import AbstractSmoothShape, chord, Crossing, first_ahead, round_crossings, within_reach
from ._bounds import AbstractBounded


class Ellipsoid(AbstractSmoothShape, AbstractBounded):
    """An ellipsoid along the axes: a sphere that is stretched along each of them.

    `uv` is azimuth and elevation on that sphere, in radians. Turn it with a `Transformed`.

    **Arguments:**

    - `center`: the centre.
    - `radii`: half of its lengths along x, y and z; positive.

    Example: an egg that lies on its side.

    ```python
    egg = sg.Surface(sg.Ellipsoid([0.0, 0.0, 0.3], [0.4, 0.3, 0.3]), [0.9, 0.85, 0.7])
    ```
    """

    center: Vector = eqx.field(converter=as_float_leaf, default=(0.0, 0.0, 0.0))
    radii: Vector = eqx.field(converter=as_float_leaf, default=(1.0, 1.0, 1.0))

    is_convex: ClassVar[bool] = True
    has_uv: ClassVar[bool] = True

    def __check_init__(self):
        require_positive(self, "radii")
        require_finite(self, "center")

    def bounding_ball(self) -> Ball:
        # Its extent in a direction grows with every radius: the largest ball about all.
        return Ball(self.center, jnp.max(jnp.where(self.radii < 0, jnp.nan, self.radii)))

    def cross(self, ray: Ray) -> tuple[Crossing, Scalar]:
        # In x' = (x - center) / radii it is the unit sphere. Lines stay lines, t stays t, and so do
        # shares of a pixel.
        def intersect_line(origin: Vector, direction: Vector) -> tuple[Scalar, Vector, Scalar]:
            start, way = (origin - self.center) / self.radii, direction / self.radii
            return chord(start, way, dot(way, way), jnp.ones_like(ray.near))

        (t, offset, square), (gradient, d_offset, d_square) = pixel_jvp(intersect_line, ray)
        enter, leave = round_crossings(Crossing(t, gradient), square, d_square)
        crossing = first_ahead(ray, enter, leave)
        covered = disk_coverage(offset, d_offset, jnp.ones_like(ray.near))
        return crossing, covered * within_reach(ray, crossing)

    def normal_at(self, point: Vector) -> Vector:
        # The gradient of |(x - center) / radii|^2 / 2, times the mean of squared radii, so that its
        # size is that of a length.
        scale = jnp.mean(self.radii**2)
        return safe_normalise(scale * (point - self.center) / self.radii**2)

    def uv_at(self, point: Vector) -> Float[Array, "2"]:
        outward = safe_normalise((point - self.center) / self.radii)
        return jnp.stack([azimuth(outward), elevation(outward)])
