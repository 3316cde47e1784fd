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


class OrthographicCamera(AbstractCamera):
    """A camera whose rays are parallel: no perspective, the footprint is the same everywhere.

    **Arguments:**

    - `pose`: the transform world from camera.
    - `focal`: the number of pixels in a unit of the camera's frame.
    - `width`, `height`: the size of the picture, in pixels; static.
    - `principal_point`: the pixel that shows the camera's axis, `2`; by default the centre.
    - `near`, `far`: the ends of every ray, in the camera's units.
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
        extent: ScalarLike,
        width: IntLike,
        height: IntLike,
        near: ScalarLike = 0.01,
        far: ScalarLike = 100.0,
    ) -> "OrthographicCamera":
        """Makes a camera at `eye` that looks at `target`.

        **Arguments:**

        - `eye`, `target`: two different points, `3`.
        - `up`: the direction that is upwards in the picture, `3`; not parallel to the view.
        - `extent`: the width of the picture, in world units.
        - `width`, `height`: the size of the picture, in pixels.
        - `near`, `far`: the ends of every ray, in the camera's units.

        **Returns:**

        The camera.
        """
        focal = operator.index(width) / as_float_leaf(extent)
        return OrthographicCamera(
            Pose.look_at(eye, target, up), focal, width, height, near=near, far=far
        )

    def line(self, pixel: Float[Array, "2"]) -> tuple[Vector, Vector]:
        # origin = pose ((x - c_x) / f, -(y - c_y) / f, 0), direction = -z
        x, y = ((pixel[i] - self.principal_point[i]) / self.focal for i in range(2))
        origin = self.pose.point(jnp.stack([x, -y, jnp.zeros_like(x)]))
        ahead = jnp.asarray([0.0, 0.0, -1.0], dtype=origin.dtype)
        return origin, rotate(self.pose.linear(), ahead)

    def ray(self, pixel: Float[Array, "2"]) -> Ray:
        return cone(self, pixel)

    def project(self, point: Vector) -> Float[Array, "2"]:
        x, y, _ = self.pose.inverse().point(point)
        # (c_x + f x, c_y - f y)
        return self.principal_point + self.focal * jnp.stack([x, -y])
