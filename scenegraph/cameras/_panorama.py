import math
from typing import Any

import equinox as eqx
import jax.numpy as jnp

from .._typing import Array, Float, IntLike, Scalar, ScalarLike, Vector, VectorLike
from ..numerics import as_float_leaf
from ..rays import Ray
from ..transforms import Pose, rotate
from ._base import AbstractCamera, as_resolution, cone
from ._intrinsics import as_pair, assign_intrinsics


class PanoramaCamera(AbstractCamera):
    """A picture of all directions, equirectangular: azimuth along x, elevation along y.

    The middle looks ahead, the sides behind, the upper edge straight up. Rays have directions of
    length one, so `t` is the distance from the eye.

    **Arguments:**

    - `pose`: the transform world from camera.
    - `width`, `height`: the size of the picture, in pixels; static.
    - `focal`: the number of pixels in a radian of azimuth and of elevation, `2`, or one for both;
      by default the picture spans all directions.
    - `principal_point`: the pixel that looks ahead, `2`; by default the centre.
    - `near`, `far`: the ends of every ray, in distance from the eye.
    """

    pose: Any
    focal: Float[Array, "2"] = eqx.field(converter=as_pair)
    principal_point: Float[Array, "2"] = eqx.field(converter=as_float_leaf)
    near: Scalar = eqx.field(converter=as_float_leaf)
    far: Scalar = eqx.field(converter=as_float_leaf)
    width: int = eqx.field(static=True)
    height: int = eqx.field(static=True)

    def __init__(
        self,
        pose: Any,
        width: IntLike,
        height: IntLike,
        *,
        focal: ScalarLike | VectorLike | None = None,
        principal_point: VectorLike | None = None,
        near: ScalarLike = 0.01,
        far: ScalarLike = 100.0,
    ):
        size = as_resolution(width, height)
        around = [size[0] / (2 * math.pi), size[1] / math.pi]
        focal = as_pair(around if focal is None else focal)
        assign_intrinsics(self, pose, focal, size, principal_point, (near, far))

    @staticmethod
    def look_at(
        eye: VectorLike,
        target: VectorLike,
        up: VectorLike,
        width: IntLike,
        height: IntLike,
        near: ScalarLike = 0.01,
        far: ScalarLike = 100.0,
    ) -> "PanoramaCamera":
        """Makes a camera at `eye` that looks at `target`.

        **Arguments:**

        - `eye`, `target`: two different points, `3`.
        - `up`: the direction that is upwards in the picture, `3`; not parallel to the view.
        - `width`, `height`: the size of the picture, in pixels.
        - `near`, `far`: the ends of every ray, in distance from the eye.

        **Returns:**

        The camera.
        """
        pose, limits = Pose.look_at(eye, target, up), {"near": near, "far": far}
        return PanoramaCamera(pose, width, height, **limits)

    def line(self, pixel: Float[Array, "2"]) -> tuple[Vector, Vector]:
        # (sin(azimuth) cos(below), -sin(below), -cos(azimuth) cos(below))
        azimuth, below = (pixel - self.principal_point) / self.focal
        level = jnp.cos(below)
        direction = jnp.stack(
            [jnp.sin(azimuth) * level, -jnp.sin(below), -jnp.cos(azimuth) * level]
        )
        return self.pose.offset(), rotate(self.pose.linear(), direction)

    def ray(self, pixel: Float[Array, "2"]) -> Ray:
        return cone(self, pixel)

    def project(self, point: Vector) -> Float[Array, "2"]:
        # azimuth = atan2(x, -z), below = atan2(-y, |(x, z)|)
        x, y, z = self.pose.inverse().point(point)
        square = x**2 + z**2
        # Straight up and down any azimuth is right; the eye itself is nowhere.
        aside = square > 0
        azimuth = jnp.where(aside, jnp.arctan2(x, jnp.where(aside, -z, 1.0)), 0.0)
        level = jnp.where(aside, jnp.sqrt(jnp.where(aside, square, 1.0)), 0.0)
        somewhere = aside | (y != 0)
        below = jnp.arctan2(-y, jnp.where(somewhere, level, jnp.nan))
        return self.principal_point + self.focal * jnp.stack([azimuth, below])
