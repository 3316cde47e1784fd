import math
from typing import Any

import equinox as eqx
import jax.numpy as jnp

from .._typing import Array, Float, PyTree, Scalar, ScalarLike, Vector, VectorLike
from ..numerics import as_float_leaf, dot, safe_sqrt
from ..rays import Ray
from ..transforms import rotate
from ._base import AbstractCamera, check_resolution, cone
from ._lens import is_shown, Place, undistort
from ._pairs import as_pair, principal_or_centre


# Below this tangent of the angle off the axis its arc tangent is a series.
_SMALL = 0.1
_TERMS = 16


class FisheyeCamera(AbstractCamera):
    """A fisheye lens: OpenCV's (and COLMAP's OPENCV_FISHEYE), the angle off the axis made distance.

    A point at the angle `theta` off the axis is seen

        theta * (1 + k1 theta^2 + k2 theta^4 + k3 theta^6 + k4 theta^8)

    focal lengths from the principal point, in its own direction. Angles may pass a right angle;
    what is exactly behind has no direction. Rays have directions of length one, so `t` is the
    distance from the eye. Where the formula folds back nothing is shown: `project` gives no finite
    numbers, and pixels have the lines of the last thing that is shown on the way to them, with
    finite derivatives. Pixels beyond `theta` of pi look back.

    **Arguments:**

    - `pose`: world from camera.
    - `focal`: pixels a radian at the axis, of x and y; or one number for both.
    - `width`, `height`: of the picture, in pixels; static.
    - `principal_point`: where the optical axis meets the picture, in pixels, (0.5, 0.5) being the
      centre of the first one (OpenCV itself counts from there: add a half); by default the
      picture's centre.
    - `near`, `far`: the part of every ray that is looked at, by distance from the eye.
    - `k1`, `k2`, `k3`, `k4`: of the lens; zero by default, which is the equidistant fisheye.

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
        width: int,
        height: int,
        *,
        principal_point: VectorLike | None = None,
        near: ScalarLike = 0.01,
        far: ScalarLike = 100.0,
        k1: ScalarLike = 0.0,
        k2: ScalarLike = 0.0,
        k3: ScalarLike = 0.0,
        k4: ScalarLike = 0.0,
    ):
        check_resolution(width, height)
        self.pose, self.width, self.height = pose, width, height
        self.focal = as_pair(focal)
        self.principal_point = principal_or_centre(principal_point, width, height)
        self.near, self.far = as_float_leaf(near), as_float_leaf(far)
        self.k1, self.k2 = as_float_leaf(k1), as_float_leaf(k2)
        self.k3, self.k4 = as_float_leaf(k3), as_float_leaf(k4)

    def line(self, pixel: Float[Array, "2"]) -> tuple[Vector, Vector]:
        shown = (pixel - self.principal_point) / self.focal
        angle = undistort(_bend, self._coefficients(), shown)
        sine, cosine = _sine_and_cosine(dot(angle, angle))
        x, y = angle * sine
        return self.pose.offset(), rotate(self.pose.linear(), jnp.stack([x, -y, -cosine]))

    def ray(self, pixel: Float[Array, "2"]) -> Ray:
        return cone(self, pixel)

    def project(self, point: Vector) -> Float[Array, "2"]:
        x, y, z = self.pose.inverse().point(point)
        place = jnp.stack([x, -y])
        angle = place * _angle_by_length(dot(place, place), -z)
        shown = _bend(self._coefficients(), angle)
        seen = is_shown(_bend, self._coefficients(), angle)
        return self.principal_point + self.focal * jnp.where(seen, shown, jnp.nan)

    def _coefficients(self) -> PyTree:
        return self.k1, self.k2, self.k3, self.k4


def _bend(coefficients: PyTree, angle: Place) -> Place:
    k1, k2, k3, k4 = coefficients
    square = dot(angle, angle)
    return angle * (1 + square * (k1 + square * (k2 + square * (k3 + square * k4))))


def _sine_and_cosine(square: Scalar) -> tuple[Scalar, Scalar]:
    """`sin(a) / a` and `cos(a)` by the square of `a`, in which they are smooth, also at zero.

    Their series are exact to rounding up to `a = pi`, where a fisheye ends.
    """
    square = jnp.minimum(square, math.pi**2)
    sine, cosine = jnp.zeros_like(square), jnp.zeros_like(square)
    for n in reversed(range(_TERMS)):
        sign = (-1) ** n
        sine = sign / math.factorial(2 * n + 1) + square * sine
        cosine = sign / math.factorial(2 * n) + square * cosine
    return sine, cosine


def _angle_by_length(square: Scalar, ahead: Scalar) -> Scalar:
    """`atan2(a, ahead) / a` by the square of `a`; smooth on the axis ahead, nothing behind."""
    on_axis = (ahead > 0) & (square < (_SMALL * ahead) ** 2)
    length = safe_sqrt(jnp.where(on_axis, 1.0, square))
    off = jnp.arctan2(length, ahead) / jnp.where(length > 0, length, jnp.nan)
    forward = jnp.where(on_axis, ahead, 1.0)
    ratio, near = square / forward**2, jnp.zeros_like(square)
    for n in reversed(range(_TERMS // 2)):
        near = (-1) ** n / (2 * n + 1) + ratio * near
    return jnp.where(on_axis, near / forward, off)
