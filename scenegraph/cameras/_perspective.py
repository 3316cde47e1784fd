import math
import operator
from typing import Any

import equinox as eqx
import jax.numpy as jnp

from .._typing import Array, Float, IntLike, Scalar, ScalarLike, Vector, VectorLike
from ..numerics import as_float_leaf
from ..rays import Ray
from ..transforms import Pose, rotate
from ._base import AbstractCamera, cone
from ._intrinsics import assign_intrinsics


class PerspectiveCamera(AbstractCamera):
    """A pinhole camera.

    **Arguments:**

    - `pose`: the transform world from camera.
    - `focal`: the focal length, in pixels.
    - `width`, `height`: the size of the picture, in pixels; static.
    - `principal_point`: the point at which the optical axis meets the picture, in pixels, `2`; by
      default the picture's centre.
    - `near`, `far`: the ends of every ray, in units of the optical axis.
    """

    pose: Any
    focal: Scalar = eqx.field(converter=as_float_leaf)
    principal_point: Float[Array, "2"] = eqx.field(converter=as_float_leaf)
    near: Scalar = eqx.field(converter=as_float_leaf)
    far: Scalar = eqx.field(converter=as_float_leaf)
    width: int = eqx.field(static=True)
    height: int = eqx.field(static=True)

    def __init__(
        self,
        pose: Any,
        focal: ScalarLike,
        width: IntLike,
        height: IntLike,
        *,
        principal_point: VectorLike | None = None,
        near: ScalarLike = 0.01,
        far: ScalarLike = 100.0,
    ):
        assign_intrinsics(self, pose, focal, (width, height), principal_point, (near, far))

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
    ) -> "PerspectiveCamera":
        """Makes a camera at `eye` that looks at `target`.

        **Arguments:**

        - `eye`, `target`: two different points, `3`.
        - `up`: the direction that is upwards in the picture, `3`; not parallel to the view.
        - `fov_x`: the horizontal angle of view, in radians, between 0 and pi.
        - `width`, `height`: the size of the picture, in pixels.
        - `near`, `far`: the ends of every ray, in units of the optical axis.

        **Returns:**

        The camera.

        **Errors:**

        `ValueError` for an impossible angle of view.
        """
        return PerspectiveCamera(
            Pose.look_at(eye, target, up),
            focal_from_fov(fov_x, width),
            width,
            height,
            near=near,
            far=far,
        )

    def line(self, pixel: Float[Array, "2"]) -> tuple[Vector, Vector]:
        # docs/conventions.md, "Pixels": ((x - c_x) / f, -(y - c_y) / f, -1) in the camera's axes.
        # Apart, because XLA computes coordinates that were stacked number by number.
        x, y = ((pixel[i] - self.principal_point[i]) / self.focal for i in range(2))
        direction = jnp.stack([x, -y, -jnp.ones_like(x)])
        return self.pose.offset(), rotate(self.pose.linear(), direction)

    def ray(self, pixel: Float[Array, "2"]) -> Ray:
        return cone(self, pixel)

    def project(self, point: Vector) -> Float[Array, "2"]:
        # (c_x + f x / -z, c_y - f y / -z) of a point before the camera, z < 0
        x, y, z = self.pose.inverse().point(point)
        ahead = jnp.where(z < 0, -z, jnp.nan)
        return self.principal_point + self.focal * jnp.stack([x, -y]) / ahead


def focal_from_fov(fov_x: ScalarLike, width: IntLike) -> ScalarLike:
    """Computes the focal length in pixels of a horizontal angle of view in radians."""
    # f = (width / 2) / tan(fov / 2)
    width = operator.index(width)
    if isinstance(fov_x, float | int):
        if not 0 < fov_x < math.pi:
            raise ValueError(f"`fov_x` must lie between 0 and pi radians; got {fov_x}.")
        return 0.5 * width / math.tan(0.5 * fov_x)
    return 0.5 * width / jnp.tan(0.5 * as_float_leaf(fov_x))
