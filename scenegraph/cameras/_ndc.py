import math
from typing import Any

import equinox as eqx
import jax.numpy as jnp

from .._typing import Array, Float, Scalar, ScalarLike, Vector, VectorLike
from ..numerics import as_float_leaf, safe_normalise, safe_sqrt, unfreeze
from ..rays import Ray
from ._base import AbstractCamera, AbstractOuterCamera, cone


class NDCCamera(AbstractOuterCamera):
    """A camera in a space that is bent so that a frustum without end becomes a cube.

    The frustum opens along -z of the world. In the bent space, rays are straight again; they begin
    on a plane (z = -1, `t = 0`) and meet what is infinitely far away at z = 1, `t = 1`. Scenes of
    such rays live in the bent space.

    `view` is the unit direction in the world, before bending.

    **Arguments:**

    - `camera`: the camera in the world; it looks roughly along -z.
    - `frustum`: twice the focal length over the frustum's width, and over its height, `2`.
    - `plane`: the distance before the world's origin at which rays begin, in world units.
    - `near`, `far`: the ends of every ray, in `t`.
    - `published`: if true, rays have the scalar radius and the `view` of the published mip-NeRF
      code: half the distances to the origins of the next row's and the next column's rays (the
      last row and column repeat those of the last but two), and directions that are not
      normalised; static.

    **Source:** Mildenhall et al. 2020, appendix C; `convert_to_ndc` of the published mip-NeRF code.
    """

    camera: AbstractCamera
    frustum: Float[Array, "2"] = eqx.field(converter=as_float_leaf)
    plane: Scalar = eqx.field(converter=as_float_leaf)
    near: Scalar = eqx.field(converter=as_float_leaf)
    far: Scalar = eqx.field(converter=as_float_leaf)
    published: bool = eqx.field(static=True)

    def __init__(
        self,
        camera: AbstractCamera,
        frustum: VectorLike,
        *,
        plane: ScalarLike = 1.0,
        near: ScalarLike = 0.0,
        far: ScalarLike = 1.0,
        published: bool = False,
    ):
        self.camera, self.published = camera, published
        self.frustum, self.plane = as_float_leaf(frustum), as_float_leaf(plane)
        self.near, self.far = as_float_leaf(near), as_float_leaf(far)

    @property
    def pose(self) -> Any:
        """The transform world from camera of the camera in the world."""
        return self.camera.pose  # pyright: ignore[reportAttributeAccessIssue]

    def line(self, pixel: Float[Array, "2"]) -> tuple[Vector, Vector]:
        return line_to_ndc(*self.camera.line(pixel), self.frustum, self.plane)

    def ray(self, pixel: Float[Array, "2"]) -> Ray:
        camera = unfreeze(self)
        _, direction = camera.camera.line(pixel)
        if camera.published:
            origin, bent = camera.line(pixel)
            radius = _published_radius(camera, pixel)
            return Ray.from_radius(origin, bent, direction, radius, camera.near, camera.far)
        return eqx.tree_at(lambda ray: ray.view, cone(camera, pixel), safe_normalise(direction))

    def project(self, point: Vector) -> Float[Array, "2"]:
        # The inverse of z' = 1 + 2 n / z, (x', y') = -frustum (x, y) / z
        z = 2 * self.plane / (point[2] - 1)
        across = -point[:2] * z / self.frustum
        return self.camera.project(jnp.append(across, z))


def line_to_ndc(
    origin: Vector, direction: Vector, frustum: Float[Array, "2"], plane: ScalarLike = 1.0
) -> tuple[Vector, Vector]:
    """Maps a line of the world to the space of `NDCCamera`, from z = -1 to z = 1."""
    # NeRF, appendix C, after moving o to the plane z = -n, with a_x = 2 f / width and so on:
    #   o' = (-a_x o_x / o_z, -a_y o_y / o_z, 1 + 2 n / o_z)
    #   d' = (-a_x (d_x / d_z - o_x / o_z), -a_y (d_y / d_z - o_y / o_z), -2 n / o_z)
    origin = origin - (plane + origin[2]) / direction[2] * direction
    start = origin[:2] / origin[2]
    towards = direction[:2] / direction[2] - start
    bent = jnp.append(-frustum * start, 1 + 2 * plane / origin[2])
    return bent, jnp.append(-frustum * towards, -2 * plane / origin[2])


def _published_radius(camera: NDCCamera, pixel: Float[Array, "2"]) -> Scalar:
    # `convert_to_ndc`: r = (|o(x + 1) - o(x)| + |o(y + 1) - o(y)|) / 2 * 2 / sqrt(12)
    last = jnp.asarray([camera.width, camera.height]) - 1
    place = jnp.where(pixel > last, pixel - 2, pixel)
    # Each difference is taken along one axis; only the coordinate on that axis is moved back.
    across = _origin_distance(camera, jnp.stack([place[0], pixel[1]]), jnp.asarray([1.0, 0.0]))
    down = _origin_distance(camera, jnp.stack([pixel[0], place[1]]), jnp.asarray([0.0, 1.0]))
    return (across + down) / math.sqrt(12)


def _origin_distance(
    camera: NDCCamera, pixel: Float[Array, "2"], step: Float[Array, "2"]
) -> Scalar:
    apart = camera.line(pixel + step)[0] - camera.line(pixel)[0]
    return safe_sqrt(jnp.sum(apart * apart))
