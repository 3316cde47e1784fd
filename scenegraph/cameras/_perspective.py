import math
from typing import Any

import equinox as eqx
import jax.numpy as jnp

from .._typing import Array, Float, Scalar, ScalarLike, Vector, VectorLike
from ..numerics import as_float_leaf
from ..rays import Ray
from ..transforms import Pose, rotate
from ._base import AbstractCamera, check_resolution, cone


class PerspectiveCamera(AbstractCamera):
    """A pinhole camera.

    **Arguments:**

    - `pose`: world from camera.
    - `focal`: the focal length, in pixels.
    - `width`, `height`: of the picture, in pixels; static.
    - `principal_point`: where the optical axis meets the picture, in pixels; by default its
      centre.
    - `near`, `far`: the part of every ray that is looked at, in units of the optical axis.
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
        width: int,
        height: int,
        *,
        principal_point: VectorLike | None = None,
        near: ScalarLike = 0.01,
        far: ScalarLike = 100.0,
    ):
        check_resolution(width, height)
        self.pose, self.width, self.height = pose, width, height
        self.focal = as_float_leaf(focal)
        centre = [width / 2, height / 2] if principal_point is None else principal_point
        self.principal_point = as_float_leaf(centre)
        self.near, self.far = as_float_leaf(near), as_float_leaf(far)

    @staticmethod
    def look_at(
        eye: VectorLike,
        target: VectorLike,
        up: VectorLike,
        fov_x: ScalarLike,
        width: int,
        height: int,
        near: ScalarLike = 0.01,
        far: ScalarLike = 100.0,
    ) -> "PerspectiveCamera":
        """A camera at `eye` that looks at `target`.

        **Arguments:**

        - `eye`, `target`: two different points.
        - `up`: what shall point upwards in the picture; not parallel to the view.
        - `fov_x`: horizontal angle of view, in radians, between 0 and pi.
        - `width`, `height`: in pixels.
        - `near`, `far`: as in `PerspectiveCamera`.

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
        x, y = (pixel - self.principal_point) / self.focal
        direction = jnp.stack([x, -y, -jnp.ones_like(x)])
        return self.pose.offset(), rotate(self.pose.linear(), direction)

    def ray(self, pixel: Float[Array, "2"]) -> Ray:
        return cone(self, pixel)

    def project(self, point: Vector) -> Float[Array, "2"]:
        x, y, z = self.pose.inverse().point(point)
        ahead = jnp.where(z < 0, -z, jnp.nan)
        return self.principal_point + self.focal * jnp.stack([x, -y]) / ahead


def focal_from_fov(fov_x: ScalarLike, width: int) -> ScalarLike:
    """The focal length of a picture with a given horizontal angle of view."""
    if isinstance(fov_x, float | int):
        if not 0 < fov_x < math.pi:
            raise ValueError(f"`fov_x` must lie between 0 and pi radians; got {fov_x}.")
        return 0.5 * width / math.tan(0.5 * fov_x)
    return 0.5 * width / jnp.tan(0.5 * as_float_leaf(fov_x))
