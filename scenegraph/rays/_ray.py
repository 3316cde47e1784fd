import equinox as eqx
import jax
import jax.numpy as jnp

from .._typing import Array, Float, Scalar, ScalarLike, Vector
from ..numerics import AbstractModule, as_float_leaf, safe_normalise, safe_sqrt
from ..transforms import AbstractTransform, rotate


class Ray(AbstractModule):
    """A cone of light: a line and how it moves when the pixel moves.

    Points on it are `origin + t * direction`. The direction is not normalised, and no transform
    normalises it, so that `t` is the same number in every frame.

    **Arguments:**

    - `origin`: where `t = 0`, in world units.
    - `direction`: what `t` multiplies, in world units.
    - `view`: what view-dependent colour sees; of length one for ordinary cameras.
    - `d_origin`, `d_direction`: derivatives by the pixel's x (first row) and y (second row).
    - `near`, `far`: the part of the ray that is looked at, in `t`.
    """

    origin: Float[Array, "*rays 3"] = eqx.field(converter=as_float_leaf)
    direction: Float[Array, "*rays 3"] = eqx.field(converter=as_float_leaf)
    view: Float[Array, "*rays 3"] = eqx.field(converter=as_float_leaf)
    d_origin: Float[Array, "*rays 2 3"] = eqx.field(converter=as_float_leaf)
    d_direction: Float[Array, "*rays 2 3"] = eqx.field(converter=as_float_leaf)
    near: Float[Array, "*rays"] = eqx.field(converter=as_float_leaf)
    far: Float[Array, "*rays"] = eqx.field(converter=as_float_leaf)

    @staticmethod
    def from_radius(
        origin: Vector, direction: Vector, view: Vector, radius: Scalar, near: Scalar, far: Scalar
    ) -> "Ray":
        """A cone given by mip-NeRF's scalar radius instead of a camera.

        **Arguments:**

        - `origin`, `direction`, `view`, `near`, `far`: as in `Ray`.
        - `radius`: of the cone at `t = 1`.

        **Returns:**

        A ray whose `radius` is the one given.
        """
        footprint = jnp.sqrt(3.0) * radius * jnp.eye(2, 3, dtype=direction.dtype)
        return Ray(origin, direction, view, jnp.zeros_like(footprint), footprint, near, far)

    @property
    def radius(self) -> Float[Array, "*rays"]:
        """mip-NeRF's scalar: the cone's radius at `t = 1`, `2 / sqrt(12)` of a pixel there."""
        step = self.d_origin + self.d_direction
        return safe_sqrt(jnp.mean(jnp.sum(step * step, axis=-1), axis=-1) / 3)

    def at(self, t: ScalarLike) -> Vector:
        """The point at parameter `t` (one ray).

        **Arguments:**

        - `t`: along the ray.

        **Returns:**

        `origin + t * direction`.
        """
        return self.origin + t * self.direction


def widen(ray: Ray, width: ScalarLike) -> Ray:
    """Cones of another width.

    **Arguments:**

    - `ray`: with any leading axes.
    - `width`: in pixels.

    **Returns:**

    The same lines, their derivatives by the pixel multiplied by the width.
    """
    wider = ray.d_origin * width, ray.d_direction * width
    return eqx.tree_at(lambda r: (r.d_origin, r.d_direction), ray, wider)


def transform_ray(transform: AbstractTransform, ray: Ray) -> Ray:
    """The same ray in the transform's parent frame; `t` keeps its meaning (one ray).

    **Arguments:**

    - `transform`: parent from child.
    - `ray`: in the child's frame.

    **Returns:**

    The ray in the parent's frame; `view` keeps its length.
    """
    matrix = transform.linear()
    rotate_each = jax.vmap(rotate, (None, 0))
    return Ray(
        origin=transform.point(ray.origin),
        direction=rotate(matrix, ray.direction),
        view=_turn(rotate(matrix, ray.view), ray.view),
        d_origin=rotate_each(matrix, ray.d_origin),
        d_direction=rotate_each(matrix, ray.d_direction),
        near=ray.near,
        far=ray.far,
    )


def _turn(turned: Vector, original: Vector) -> Vector:
    return safe_normalise(turned) * safe_sqrt(jnp.sum(original * original))
