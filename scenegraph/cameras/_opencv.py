from typing import Any

import equinox as eqx
import jax.numpy as jnp

from .._typing import Array, Float, IntLike, PyTree, Scalar, ScalarLike, Vector, VectorLike
from ..numerics import as_float_leaf
from ..rays import Ray
from ..transforms import Pose, rotate
from ._base import AbstractCamera, cone
from ._intrinsics import as_pair, assign_intrinsics
from ._lens import is_before_fold, Point2, undistort
from ._perspective import focal_from_fov


class OpenCVCamera(AbstractCamera):
    """A pinhole camera with OpenCV's (and COLMAP's) radial and tangential lens distortion.

    With `x`, `y` (down) a point's coordinates divided by its depth, and `r` their length, the point
    is seen at `principal_point + focal * (u, v)`, where

        radial = (1 + k1 r^2 + k2 r^4 + k3 r^6) / (1 + k4 r^2 + k5 r^4 + k6 r^6)
        u = x * radial + 2 p1 x y + p2 (r^2 + 2 x^2)
        v = y * radial + p1 (r^2 + 2 y^2) + 2 p2 x y

    The formula may fold back: far off the axis it can map points into the picture that the lens
    never shows. `project` gives no finite numbers for these. Pixels beyond the fold have the lines
    of the last thing that is shown on the way to them; their derivatives are finite, too.

    **Arguments:**

    - `pose`: the transform world from camera.
    - `focal`: the focal lengths of x and y, in pixels, `2`; or one for both.
    - `width`, `height`: the size of the picture, in pixels; static.
    - `principal_point`: the point at which the optical axis meets the picture, in pixels, `2`,
      (0.5, 0.5) being the centre of the first one (OpenCV itself counts from there: add a half); by
      default the picture's centre.
    - `near`, `far`: the ends of every ray, in units of the optical axis.
    - `k1`, `k2`, `p1`, `p2`, `k3`, `k4`, `k5`, `k6`: the lens coefficients, in OpenCV's order; zero
      by default.

    **Source:** OpenCV's documentation of the module `calib3d`; COLMAP's models from
    SIMPLE_PINHOLE to FULL_OPENCV are cases of it.
    """

    pose: Any
    focal: Float[Array, "2"] = eqx.field(converter=as_pair)
    principal_point: Float[Array, "2"] = eqx.field(converter=as_float_leaf)
    near: Scalar = eqx.field(converter=as_float_leaf)
    far: Scalar = eqx.field(converter=as_float_leaf)
    k1: Scalar = eqx.field(converter=as_float_leaf)
    k2: Scalar = eqx.field(converter=as_float_leaf)
    p1: Scalar = eqx.field(converter=as_float_leaf)
    p2: Scalar = eqx.field(converter=as_float_leaf)
    k3: Scalar = eqx.field(converter=as_float_leaf)
    k4: Scalar = eqx.field(converter=as_float_leaf)
    k5: Scalar = eqx.field(converter=as_float_leaf)
    k6: Scalar = eqx.field(converter=as_float_leaf)
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
        p1: ScalarLike = 0.0,
        p2: ScalarLike = 0.0,
        k3: ScalarLike = 0.0,
        k4: ScalarLike = 0.0,
        k5: ScalarLike = 0.0,
        k6: ScalarLike = 0.0,
    ):
        size, limits = (width, height), (near, far)
        assign_intrinsics(self, pose, as_pair(focal), size, principal_point, limits)
        self.k1, self.k2, self.p1, self.p2 = map(as_float_leaf, (k1, k2, p1, p2))
        self.k3, self.k4, self.k5, self.k6 = map(as_float_leaf, (k3, k4, k5, k6))

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
    ) -> "OpenCVCamera":
        """Makes a camera at `eye` that looks at `target`.

        **Arguments:**

        - `eye`, `target`: two different points, `3`.
        - `up`: the direction that is upwards in the picture, `3`; not parallel to the view.
        - `fov_x`: the horizontal angle of view, in radians, of a lens without coefficients; between
          0 and pi.
        - `width`, `height`: the size of the picture, in pixels.
        - `near`, `far`: the ends of every ray, in units of the optical axis.
        - `lens`: lens coefficients by name, such as `k1=0.1`. Keyword only arguments.

        **Returns:**

        The camera.
        """
        pose, limits = Pose.look_at(eye, target, up), {"near": near, "far": far}
        return OpenCVCamera(pose, focal_from_fov(fov_x, width), width, height, **limits, **lens)

    def line(self, pixel: Float[Array, "2"]) -> tuple[Vector, Vector]:
        shown = (pixel - self.principal_point) / self.focal
        x, y = undistort(_distort, self._coefficients(), shown)
        # (x, -y, -1) with (x, y) = distort^-1((p - c) / f): OpenCV looks along +z, with y down.
        direction = jnp.stack([x, -y, -jnp.ones_like(x)])
        return self.pose.offset(), rotate(self.pose.linear(), direction)

    def ray(self, pixel: Float[Array, "2"]) -> Ray:
        return cone(self, pixel)

    def project(self, point: Vector) -> Float[Array, "2"]:
        x, y, z = self.pose.inverse().point(point)
        # c + f distort(x / -z, -y / -z)
        point2 = jnp.stack([x, -y]) / jnp.where(z < 0, -z, jnp.nan)
        shown = _distort(self._coefficients(), point2)
        seen = is_before_fold(_distort, self._coefficients(), point2)
        return self.principal_point + self.focal * jnp.where(seen, shown, jnp.nan)

    def _coefficients(self) -> PyTree:
        above, below = (self.k1, self.k2, self.k3), (self.k4, self.k5, self.k6)
        return above, below, (self.p1, self.p2)


def _distort(coefficients: PyTree, point: Point2) -> Point2:
    # (u, v) = (x, y) radial + (p2, p1) (r^2 + 2 (x^2, y^2)) + 2 x y (p1, p2)
    above, below, (p1, p2) = coefficients
    (x, y), square = point, jnp.sum(point**2)
    radial = _series(above, square) / _series(below, square)
    aside = jnp.stack([p2, p1]) * (square + 2 * point**2) + 2 * x * y * jnp.stack([p1, p2])
    return point * radial + aside


def _series(coefficients: tuple[Scalar, Scalar, Scalar], square: Scalar) -> Scalar:
    """Computes `1 + a r^2 + b r^4 + c r^6`."""
    a, b, c = coefficients
    return 1 + square * (a + square * (b + square * c))
