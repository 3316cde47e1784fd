import math
import operator
from typing import Any

import equinox as eqx
import jax.numpy as jnp

from .._typing import Array, Float, IntLike, PyTree, Scalar, ScalarLike, Vector, VectorLike
from ..numerics import as_float_leaf, dot, safe_sqrt
from ..rays import Ray
from ..transforms import Pose, rotate
from ._base import AbstractCamera, cone
from ._intrinsics import as_pair, assign_intrinsics
from ._lens import is_before_fold, Point2, undistort


# Below this tangent of the angle off the axis its arc tangent is a series.
_SMALL = 0.1
_TERMS = 16


class FisheyeCamera(AbstractCamera):
    """A fisheye lens, OpenCV's (COLMAP's OPENCV_FISHEYE): distances follow angles off the axis.

    A point at the angle `theta` off the axis is seen at the distance

        theta * (1 + k1 theta^2 + k2 theta^4 + k3 theta^6 + k4 theta^8)

    from the principal point, in focal lengths. Angles may exceed a right angle; a point exactly
    behind the camera has no image. Rays have directions of length one, so `t` is the distance from
    the eye. Where the formula folds back nothing is shown: `project` gives no finite numbers, and
    pixels have the lines of the last point that is shown on the way to them, with finite
    derivatives. Pixels beyond `theta` of pi look back.

    **Arguments:**

    - `pose`: the transform world from camera.
    - `focal`: the number of pixels in a radian at the axis, along x and y, `2`; or one for both.
    - `width`, `height`: the size of the picture, in pixels; static.
    - `principal_point`: the point at which the optical axis meets the picture, in pixels, `2`,
      (0.5, 0.5) being the centre of the first one (OpenCV itself counts from there: add a half); by
      default the picture's centre.
    - `near`, `far`: the ends of every ray, in distance from the eye.
    - `k1`, `k2`, `k3`, `k4`: the lens coefficients; zero by default, which is the equidistant
      fisheye.

    **Source:** OpenCV's documentation of `fisheye`.
    """

    pose: Any
    focal: Float[Array, "2"] = eqx.field(converter=as_pair)
    principal_point: Float[Array, "2"] = eqx.field(converter=as_float_leaf)
    near: Scalar = eqx.field(converter=as_float_leaf)
    far: Scalar = eqx.field(converter=as_float_leaf)
    k1: Scalar = eqx.field(converter=as_float_leaf)
    k2: Scalar = eqx.field(converter=as_float_leaf)
    k3: Scalar = eqx.field(converter=as_float_leaf)
    k4: Scalar = eqx.field(converter=as_float_leaf)
    width: int = eqx.field(static=True)
    height: int = eqx.field(static=True)

    def __init__(
        self,
        pose: Any,
        focal: ScalarLike | VectorLike,
        width: IntLike,
        height: IntLike,
        *,
        principal_point: VectorLike | None = None,
        near: ScalarLike = 0.01,
        far: ScalarLike = 100.0,
        k1: ScalarLike = 0.0,
        k2: ScalarLike = 0.0,
        k3: ScalarLike = 0.0,
        k4: ScalarLike = 0.0,
    ):
        size, limits = (width, height), (near, far)
        assign_intrinsics(self, pose, as_pair(focal), size, principal_point, limits)
        self.k1, self.k2, self.k3, self.k4 = map(as_float_leaf, (k1, k2, k3, k4))

    @staticmethod
    def look_at(
        eye: VectorLike,
        target: VectorLike,
        up: VectorLike,
        fov_x: ScalarLike,
        width: IntLike,
        height: IntLike,
        near: ScalarLike = 0.01,
        far: ScalarLike = 100.0,
        **lens: ScalarLike,
    ) -> "FisheyeCamera":
        """Makes a camera at `eye` that looks at `target`.

        **Arguments:**

        - `eye`, `target`: two different points, `3`.
        - `up`: the direction that is upwards in the picture, `3`; not parallel to the view.
        - `fov_x`: the angle between the left and the right side of the picture, in radians, of a
          lens without coefficients.
        - `width`, `height`: the size of the picture, in pixels.
        - `near`, `far`: the ends of every ray, in distance from the eye.
        - `lens`: lens coefficients by name, such as `k1=0.1`. Keyword only arguments.

        **Returns:**

        The camera.
        """
        pose, limits = Pose.look_at(eye, target, up), {"near": near, "far": far}
        return FisheyeCamera(
            pose, operator.index(width) / as_float_leaf(fov_x), width, height, **limits, **lens
        )

    def line(self, pixel: Float[Array, "2"]) -> tuple[Vector, Vector]:
        # The inverse of the formula gives theta times the unit vector a off the axis; the direction
        # is (a_x sin(theta), -a_y sin(theta), -cos(theta)).
        shown = (pixel - self.principal_point) / self.focal
        angle = undistort(_distort, self._coefficients(), shown)
        sine, cosine = _sinc_and_cosine(dot(angle, angle))
        x, y = angle * sine
        return self.pose.offset(), rotate(self.pose.linear(), jnp.stack([x, -y, -cosine]))

    def ray(self, pixel: Float[Array, "2"]) -> Ray:
        return cone(self, pixel)

    def project(self, point: Vector) -> Float[Array, "2"]:
        x, y, z = self.pose.inverse().point(point)
        # With a = (x, -y): theta a / |a|, theta = atan2(|a|, -z), distorted.
        off_axis = jnp.stack([x, -y])
        angle = off_axis * _angle_by_length(dot(off_axis, off_axis), -z)
        shown = _distort(self._coefficients(), angle)
        seen = is_before_fold(_distort, self._coefficients(), angle)
        return self.principal_point + self.focal * jnp.where(seen, shown, jnp.nan)

    def _coefficients(self) -> PyTree:
        return self.k1, self.k2, self.k3, self.k4


def _distort(coefficients: PyTree, angle: Point2) -> Point2:
    # theta (1 + k1 theta^2 + k2 theta^4 + k3 theta^6 + k4 theta^8), by Horner's rule
    k1, k2, k3, k4 = coefficients
    square = dot(angle, angle)
    return angle * (1 + square * (k1 + square * (k2 + square * (k3 + square * k4))))


def _sinc_and_cosine(square: Scalar) -> tuple[Scalar, Scalar]:
    """Computes `sin(a) / a` and `cos(a)` from `a**2`, in which they are smooth, also at zero."""
    # sum_n (-1)^n a^(2n) / (2n + 1)! and sum_n (-1)^n a^(2n) / (2n)!, exact to rounding up to a =
    # pi, where a fisheye ends.
    square = jnp.minimum(square, math.pi**2)
    sine, cosine = jnp.zeros_like(square), jnp.zeros_like(square)
    for n in reversed(range(_TERMS)):
        sign = (-1) ** n
        sine = sign / math.factorial(2 * n + 1) + square * sine
        cosine = sign / math.factorial(2 * n) + square * cosine
    return sine, cosine


def _angle_by_length(square: Scalar, ahead: Scalar) -> Scalar:
    """Computes `atan2(a, ahead) / a` from `a**2`; smooth on the axis ahead, NaN behind."""
    # Near the axis: sum_n (-1)^n (a / ahead)^(2n) / (2n + 1) / ahead
    on_axis = (ahead > 0) & (square < (_SMALL * ahead) ** 2)
    # Off the axis, as it is: atan2(a, ahead) / a.
    length = safe_sqrt(jnp.where(on_axis, 1.0, square))
    off = jnp.arctan2(length, ahead) / jnp.where(length > 0, length, jnp.nan)
    forward = jnp.where(on_axis, ahead, 1.0)
    ratio, near = square / forward**2, jnp.zeros_like(square)
    for n in reversed(range(_TERMS // 2)):
        near = (-1) ** n / (2 * n + 1) + ratio * near
    return jnp.where(on_axis, near / forward, off)
