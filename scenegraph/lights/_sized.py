import abc

import equinox as eqx
import jax
import jax.numpy as jnp

from .._typing import Array, Bool, Float, Matrix3, Scalar, ScalarLike, Vector
from ..numerics import (
    AbstractModule,
    as_float_leaf,
    dot,
    polygon_irradiance,
    safe_divide,
    safe_norm,
)
from ..rays import LampPolygons, Ray
from ..shapes import AbstractShape
from ..transforms import AbstractTransform
from ._base import AbstractLight, LightSample


class LightPoint(AbstractModule):
    """A random point of a lamp, as it is seen from another point.

    **Arguments:**

    - `position`: the point on the lamp.
    - `normal`: the lamp's unit normal there.
    - `radiance`: radiance towards the other point; zero on a dark side.
    - `density`: the density of the direction by solid angle, at the other point.
    """

    position: Float[Array, "*rays 3"] = eqx.field(converter=as_float_leaf)
    normal: Float[Array, "*rays 3"] = eqx.field(converter=as_float_leaf)
    radiance: Float[Array, "*rays 3"] = eqx.field(converter=as_float_leaf)
    density: Float[Array, "*rays"] = eqx.field(converter=as_float_leaf)


class LampBody(AbstractModule):
    """The visible body of a lamp: a shape under a map to the light's frame.

    **Arguments:**

    - `shape`: the shape in its own frame; its normal looks to the side that shines.
    - `matrix`, `center`: the linear part and the shift of the map.
    - `keeps_angles`: true if the map turns and scales, and does nothing else; static.
    """

    shape: AbstractShape
    matrix: Matrix3
    center: Vector
    keeps_angles: bool = eqx.field(static=True, default=False)


class AbstractSizedLight(AbstractLight):
    """A lamp with a size: it is visible, throws soft shadows, and has a shape in highlights.

    The shadow ray of `sample` is as wide at the lamp as the lamp, so that what an occluder covers
    of it is the part of the lamp that it hides. A lamp does not shine through its dark side. A
    subclass has a field `radiance`, the colour of its body, and `two_sided`, which is static.
    """

    @abc.abstractmethod
    def outlines(self, point: Vector) -> LampPolygons:
        """Computes what a point sees of the lamp: one polygon for every ray of `sample`.

        **Arguments:**

        - `point`: a point on a surface, in the light's frame.

        **Returns:**

        Polygons relative to the point, counterclockwise as seen from there, and their radiance
        without shadows.
        """

    @abc.abstractmethod
    def body(self) -> LampBody:
        """Computes what is seen of the lamp.

        **Returns:**

        A shape, which shines with `radiance`, and where it is.
        """

    @abc.abstractmethod
    def sample_point(self, point: Vector, uniform: Float[Array, "2"]) -> LightPoint:
        """Chooses a point of the lamp at random.

        **Arguments:**

        - `point`: the point that is lit, in the light's frame.
        - `uniform`: two random numbers from 0 to 1.

        **Returns:**

        The point, with the density of its direction.
        """

    @abc.abstractmethod
    def density(self, point: Vector, position: Vector, normal: Vector) -> Scalar:
        """Computes the density by solid angle with which `sample_point` chooses a point.

        **Arguments:**

        - `point`: the point that is lit.
        - `position`, `normal`: the point on the lamp, and the lamp's normal there.

        **Returns:**

        The density per steradian.
        """


# Shadow rays end before the lamp's own body by this part of their length.
_GAP = 1e-3


def lamp_sample(
    light: AbstractSizedLight,
    point: Vector,
    d_point: Float[Array, "2 3"],
    centers: Float[Array, "parts 3"],
    sides: Float[Array, "parts 2 3"],
    far: ScalarLike = 1.0,
) -> LightSample:
    """Makes shadow rays to parallelograms, and the light of the lamp's outlines without a horizon.

    `sides` are the sides of the parallelograms; rays end at the fraction `far` of their lengths.
    """
    outlines = light.outlines(point)
    vectors = jax.vmap(lambda corners: polygon_irradiance(_toward(corners), corners))(
        outlines.corners
    )
    irradiance = safe_norm(vectors)[:, None] * outlines.radiance
    ends = jnp.broadcast_to((1 - _GAP) * jnp.asarray(far, point.dtype), centers.shape[:1])
    rays = jax.vmap(_wide_ray, (None, None, 0, 0, 0))(point, d_point, centers, sides, ends)
    return LightSample(rays, irradiance, jnp.zeros(3, point.dtype))


def _toward(corners: Float[Array, "corners 3"]) -> Vector:
    """Returns a unit vector along which all of a polygon is in front, if any is."""
    # The vector area of the cone about the origin: sum c_i+1 x c_i, stopped.
    area = jnp.sum(jnp.cross(jnp.roll(corners, -1, axis=0), corners), axis=0)
    return jax.lax.stop_gradient(area / jnp.maximum(safe_norm(area), jnp.finfo(area.dtype).tiny))


# The start of shadow rays, in `t`.
_NEAR = 1e-4


def _wide_ray(
    point: Vector, d_point: Float[Array, "2 3"], center: Vector, sides: Array, far: Scalar
) -> Ray:
    """Makes a shadow ray whose footprint is the pixel's at the point, and the lamp's part there."""
    direction = center - point
    # The sides in that order, and with those signs, which are the most alike at both ends.
    product = jax.lax.stop_gradient(jnp.einsum("ik,jk->ij", d_point, sides))
    swapped = jnp.abs(product[0, 1] * product[1, 0]) > jnp.abs(product[0, 0] * product[1, 1])
    sides = jnp.where(swapped, sides[::-1], sides)
    along = jnp.where(swapped, product[:, ::-1], product)
    signs = jnp.where(jnp.diagonal(along) < 0, -1, 1).astype(sides.dtype)
    # x(t) = point + t (center - point), d x(t) = (1 - t) d_point + t sides
    d_direction = signs[:, None] * sides - d_point
    view = direction / jnp.maximum(safe_norm(direction), jnp.finfo(direction.dtype).tiny)
    near = jnp.minimum(jnp.asarray(_NEAR, point.dtype), far / 2)
    return Ray(point, direction, view, d_point, d_direction, near, far)


def density_by_area(area: Scalar, point: Vector, position: Vector, normal: Vector) -> Scalar:
    """Returns the density by solid angle of a point that is chosen evenly on an area."""
    # dA cos / d^2 is the solid angle: density = d^2 / (A cos)
    away = position - point
    square = dot(away, away)
    cosine = jnp.abs(dot(away, normal)) / jnp.maximum(safe_norm(away), jnp.finfo(square.dtype).tiny)
    return safe_divide(square, area * cosine)


def is_mirrored(transform: AbstractTransform) -> Bool[Array, ""]:
    """Returns true for a transform that makes a left hand of a right one."""
    x, y, z = transform.linear()
    return dot(jnp.cross(x, y), z) < 0
