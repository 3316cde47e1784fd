from typing import ClassVar

import equinox as eqx

from .._typing import Array, Float, Scalar, Vector
from ..numerics import as_float_leaf, disk_coverage, require_finite, require_positive
from ..rays import by_pixel, Hit, Ray
from ._base import AbstractShape, Crossing, join_pieces, smooth_piece, within_reach
from ._plane import level_distance, upwards


class Disk(AbstractShape):
    """A disk in a plane of constant z; `uv` is in its units, from its centre.

    **Arguments:**

    - `center`: its middle.
    - `radius`: positive.
    """

    center: Vector = eqx.field(converter=as_float_leaf, default=(0.0, 0.0, 0.0))
    radius: Scalar = eqx.field(converter=as_float_leaf, default=1.0)

    is_convex: ClassVar[bool] = True
    has_uv: ClassVar[bool] = True

    def __check_init__(self):
        require_positive(self, "radius")
        require_finite(self, "center")

    def coverage(self, ray: Ray) -> Scalar:
        return self._cross(ray)[1]

    def pieces(self, ray: Ray) -> Hit:
        crossing, covered = self._cross(ray)
        return join_pieces(smooth_piece(ray, crossing, upwards, self._uv, covered))

    def _cross(self, ray: Ray) -> tuple[Crossing, Scalar]:
        (t, offset), (slope, slopes) = by_pixel(self._look, ray)
        crossing = Crossing(t, slope)
        covered = disk_coverage(offset, slopes, self.radius)
        return crossing, covered * within_reach(ray, crossing)

    def _look(self, origin: Vector, direction: Vector) -> tuple[Scalar, Float[Array, "2"]]:
        t = level_distance(self.center[2], origin, direction)
        return t, self._uv(origin + t * direction)

    def _uv(self, point: Vector) -> Float[Array, "2"]:
        return (point - self.center)[:2]
