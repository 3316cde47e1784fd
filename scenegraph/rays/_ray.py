import equinox as eqx
import jax
import jax.numpy as jnp

from .._typing import Array, Float, Scalar, ScalarLike, Vector
from ..numerics import AbstractModule, as_float_leaf, safe_normalise, safe_sqrt
from ..transforms import AbstractTransform, rotate


class Ray(AbstractModule):
    """A cone of light: a line and its derivatives by the pixel's coordinates.

    Points on it are `origin + t * direction`. The direction is not normalised, and no transform
    normalises it, so that `t` is the same number in every frame.

    **Arguments:**

    - `origin`: the point at `t = 0`, in world units.
    - `direction`: the change of the point per unit of `t`, in world units.
    - `view`: the direction that view-dependent colour uses; a unit vector for ordinary cameras.
    - `d_origin`, `d_direction`: derivatives by the pixel's x (first row) and y (second row).
    - `near`, `far`: the bounds of the rendered part of the ray, in `t`.
    - `appearance`: the code of the picture that the ray belongs to, for fields whose colours depend
      on it; `None` for the mean picture.
    """

    origin: Float[Array, "*rays 3"] = eqx.field(converter=as_float_leaf)
    direction: Float[Array, "*rays 3"] = eqx.field(converter=as_float_leaf)
    view: Float[Array, "*rays 3"] = eqx.field(converter=as_float_leaf)
    d_origin: Float[Array, "*rays 2 3"] = eqx.field(converter=as_float_leaf)
    d_direction: Float[Array, "*rays 2 3"] = eqx.field(converter=as_float_leaf)
    near: Float[Array, "*rays"] = eqx.field(converter=as_float_leaf)
    far: Float[Array, "*rays"] = eqx.field(converter=as_float_leaf)
    appearance: Float[Array, "*rays codes"] | None = None

    @staticmethod
    def from_radius(
        origin: Vector, direction: Vector, view: Vector, radius: Scalar, near: Scalar, far: Scalar
    ) -> "Ray":
        """Makes a cone from mip-NeRF's scalar radius at `t = 1`, in world units, not a camera."""
        # A square of side s has the radius s / sqrt(3), see `radius`.
        footprint = jnp.sqrt(3.0) * radius * jnp.eye(2, 3, dtype=direction.dtype)
        return Ray(origin, direction, view, jnp.zeros_like(footprint), footprint, near, far)

    @property
    def radius(self) -> Float[Array, "*rays"]:
        """mip-NeRF's scalar: the cone's radius at `t = 1`, `2 / sqrt(12)` of a pixel there."""
        # sqrt((|s_x|^2 + |s_y|^2) / 6), with the pixel's sides s = d_origin + d_direction at t = 1:
        # for a square of side s it is s / sqrt(3) = 2 s / sqrt(12).
        sides = self.d_origin + self.d_direction
        return safe_sqrt(jnp.mean(jnp.sum(sides * sides, axis=-1), axis=-1) / 3)

    def at(self, t: ScalarLike) -> Vector:
        """Returns the point at parameter `t` (one ray).

        **Arguments:**

        - `t`: the ray parameter.

        **Returns:**

        `origin + t * direction`, of shape `3`.
        """
        return self.origin + t * self.direction


def widen(ray: Ray, width: ScalarLike) -> Ray:
    """Returns the same lines with cones `width` pixels wide."""
    wider = ray.d_origin * width, ray.d_direction * width
    return eqx.tree_at(lambda r: (r.d_origin, r.d_direction), ray, wider)


def transform_ray(transform: AbstractTransform, ray: Ray) -> Ray:
    """Transforms one ray from the child's to the parent's frame; `view` keeps its length."""
    # x -> M x + b maps o + t d to (M o + b) + t M d, and the derivatives by the pixel by M.
    matrix = transform.linear()
    rotate_each = jax.vmap(rotate, (None, 0))
    length = safe_sqrt(jnp.sum(ray.view * ray.view))
    return Ray(
        origin=transform.point(ray.origin),
        direction=rotate(matrix, ray.direction),
        view=safe_normalise(rotate(matrix, ray.view)) * length,
        d_origin=rotate_each(matrix, ray.d_origin),
        d_direction=rotate_each(matrix, ray.d_direction),
        near=ray.near,
        far=ray.far,
        appearance=ray.appearance,
    )
