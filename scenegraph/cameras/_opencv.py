from typing import Any

import equinox as eqx
import jax.numpy as jnp

from .._typing import Array, Float, PyTree, Scalar, ScalarLike, Vector, VectorLike
from ..numerics import as_float_leaf
from ..rays import Ray
from ..transforms import rotate
from ._base import AbstractCamera, check_resolution, cone
from ._lens import is_shown, Place, undistort
from ._pairs import as_pair, principal_or_centre


class OpenCVCamera(AbstractCamera):
    """A pinhole camera whose lens bends: OpenCV's (and COLMAP's) radial and tangential distortion.

    With `x`, `y` (down) a point's coordinates divided by its depth, and `r` their length, the point
    is seen at `principal_point + focal * (u, v)`, where

        radial = (1 + k1 r^2 + k2 r^4 + k3 r^6) / (1 + k4 r^2 + k5 r^4 + k6 r^6)
        u = x * radial + 2 p1 x y + p2 (r^2 + 2 x^2)
        v = y * radial + p1 (r^2 + 2 y^2) + 2 p2 x y

    The formula may fold back: far off the axis it can bring points into the picture that the lens
    never shows. `project` gives no finite numbers for these. Pixels beyond the fold have the lines
    of the last thing that is shown on the way to them; their derivatives are finite, too.

    **Arguments:**

    - `pose`: world from camera.
    - `focal`: the focal lengths of x and y, in pixels; or one for both.
    - `width`, `height`: of the picture, in pixels; static.
    - `principal_point`: where the optical axis meets the picture, in pixels, (0.5, 0.5) being the
      centre of the first one (OpenCV itself counts from there: add a half); by default the
      picture's centre.
    - `near`, `far`: the part of every ray that is looked at, in units of the optical axis.
    - `k1`, `k2`, `p1`, `p2`, `k3`, `k4`, `k5`, `k6`: of the lens, in OpenCV's order; zero
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
        width: int,
        height: int,
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
        check_resolution(width, height)
        self.pose, self.width, self.height = pose, width, height
        self.focal = as_pair(focal)
        self.principal_point = principal_or_centre(principal_point, width, height)
        self.near, self.far = as_float_leaf(near), as_float_leaf(far)
        self.k1, self.k2, self.k3 = as_float_leaf(k1), as_float_leaf(k2), as_float_leaf(k3)
        self.k4, self.k5, self.k6 = as_float_leaf(k4), as_float_leaf(k5), as_float_leaf(k6)
        self.p1, self.p2 = as_float_leaf(p1), as_float_leaf(p2)

    def line(self, pixel: Float[Array, "2"]) -> tuple[Vector, Vector]:
        shown = (pixel - self.principal_point) / self.focal
        x, y = undistort(_bend, self._coefficients(), shown)
        direction = jnp.stack([x, -y, -jnp.ones_like(x)])
        return self.pose.offset(), rotate(self.pose.linear(), direction)

    def ray(self, pixel: Float[Array, "2"]) -> Ray:
        return cone(self, pixel)

    def project(self, point: Vector) -> Float[Array, "2"]:
        x, y, z = self.pose.inverse().point(point)
        place = jnp.stack([x, -y]) / jnp.where(z < 0, -z, jnp.nan)
        shown = _bend(self._coefficients(), place)
        seen = is_shown(_bend, self._coefficients(), place)
        return self.principal_point + self.focal * jnp.where(seen, shown, jnp.nan)

    def _coefficients(self) -> PyTree:
        above, below = (self.k1, self.k2, self.k3), (self.k4, self.k5, self.k6)
        return above, below, (self.p1, self.p2)


def _bend(coefficients: PyTree, place: Place) -> Place:
    above, below, (p1, p2) = coefficients
    (x, y), square = place, jnp.sum(place**2)
    radial = _series(above, square) / _series(below, square)
    aside = jnp.stack([p2, p1]) * (square + 2 * place**2) + 2 * x * y * jnp.stack([p1, p2])
    return place * radial + aside


def _series(coefficients: tuple[Scalar, Scalar, Scalar], square: Scalar) -> Scalar:
    a, b, c = coefficients
    return 1 + square * (a + square * (b + square * c))
