import equinox as eqx

from .._typing import Array, Float, Scalar, Vector
from ..numerics import as_float_leaf, disk_coverage, require_finite, require_positive
from ..rays import pixel_jvp, Ray
from ..transforms import Ball
from ._base import Crossing, within_reach
from ._bounds import AbstractBounded
from ._plane import AbstractLevelShape, level_distance


class Disk(AbstractLevelShape, AbstractBounded):
    """A disk in a plane of constant z; `uv` is in its units, from its centre.

    **Arguments:**

    - `center`: the centre.
    - `radius`: the radius; positive.
    """

    center: Vector = eqx.field(converter=as_float_leaf, default=(0.0, 0.0, 0.0))
    radius: Scalar = eqx.field(converter=as_float_leaf, default=1.0)

    def __check_init__(self):
        require_positive(self, "radius")
        require_finite(self, "center")

    def bounding_ball(self) -> Ball:
        return Ball(self.center, self.radius)

    def cross(self, ray: Ray) -> tuple[Crossing, Scalar]:
        def intersect_line(origin: Vector, direction: Vector) -> tuple[Scalar, Float[Array, "2"]]:
            t = level_distance(self.center[2], origin, direction)
            return t, self.uv_at(origin + t * direction)

        (t, offset), (gradient, d_offset) = pixel_jvp(intersect_line, ray)
        # The outline is a disk in the shape's plane.
        crossing = Crossing(t, gradient)
        covered = disk_coverage(offset, d_offset, self.radius)
        return crossing, covered * within_reach(ray, crossing)
