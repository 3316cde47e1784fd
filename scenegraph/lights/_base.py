import abc

import equinox as eqx
import jax.numpy as jnp

from .._typing import Array, Float, Vector
from ..numerics import AbstractModule, as_float_leaf, safe_normalise, tangents
from ..rays import Ray
from ..transforms import AbstractTransform


# Where shadow rays begin, as a part of the way to the light.
_NEAR = 1e-4


class LightSample(AbstractModule):
    """The light that one light sends to a point, were nothing in its way.

    **Arguments:**

    - `rays`: from the point to the light, as wide as the pixel's footprint; what stops them
      between `near` and `far` casts a shadow.
    - `irradiance`: power per area on a surface that faces the light.
    - `ambient`: radiance that comes evenly from all sides.
    """

    rays: Ray
    irradiance: Float[Array, "*points lights 3"] = eqx.field(converter=as_float_leaf)
    ambient: Float[Array, "*points 3"] = eqx.field(converter=as_float_leaf)


class AbstractLight(AbstractModule):
    """Something that shines on surfaces. It is a node: transforms above it move it."""

    @abc.abstractmethod
    def sample(self, point: Vector, d_point: Float[Array, "2 3"]) -> LightSample:
        """What arrives at a point.

        **Arguments:**

        - `point`: on a surface, in the light's frame.
        - `d_point`: the sides of the parallelogram that a pixel covers there.

        **Returns:**

        Rays to the light and the light along them.
        """

    @abc.abstractmethod
    def moved(self, transform: AbstractTransform) -> "AbstractLight":
        """The same light in the frame around a transform.

        **Arguments:**

        - `transform`: parent from child.

        **Returns:**

        The light in the parent's frame. Its power stays: distances count in the parent's units.
        """


def rays_to(position: Vector, point: Vector, d_point: Float[Array, "2 3"]) -> Ray:
    """The shadow ray to a light that is somewhere: its width ends at the light.

    **Arguments:**

    - `position`: of the light.
    - `point`, `d_point`: where the pixel meets the surface.

    **Returns:**

    Rays with a leading axis of one; `t` is 0 at the point and 1 at the light.
    """
    return _one_ray(point, position - point, d_point, -d_point, 1.0)


def rays_along(
    direction: Vector,
    point: Vector,
    d_point: Float[Array, "2 3"],
    far: float,
    *,
    spread: float = 0.0,
) -> Ray:
    """The shadow ray to a light that is infinitely far away.

    **Arguments:**

    - `direction`: to the light, of length one.
    - `point`, `d_point`: where the pixel meets the surface.
    - `far`: how far away things still cast shadows.
    - `spread`: how wide the light looks from the point, in radians. Keyword only argument.

    **Returns:**

    Rays with a leading axis of one; `t` is the distance from the point.
    """
    aside = spread * jnp.stack(tangents(direction))
    return _one_ray(point, direction, d_point, aside, far)


def _one_ray(
    origin: Vector, direction: Vector, d_origin: Array, d_direction: Array, far: float
) -> Ray:
    ends = jnp.asarray([_NEAR, far], origin.dtype)
    view = safe_normalise(direction)
    parts = origin, direction, view, d_origin, d_direction, *ends
    return Ray(*(part[None] for part in parts))
