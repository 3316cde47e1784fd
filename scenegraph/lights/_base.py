import abc

import equinox as eqx
import jax
import jax.numpy as jnp

from .._typing import Array, Color, Float, Scalar, ScalarLike, Vector
from ..numerics import AbstractModule, as_float_leaf, safe_normalise, tangents
from ..rays import Ray
from ..transforms import AbstractTransform


# The start of shadow rays, in `t`: a ray to a light at a position is there at `t = 1`.
_NEAR = 1e-4
# The unit of length of rays to lights that are infinitely far away: in pixels' sides, and in steps
# of rounding; and how many of them such rays are long.
_SIDES, _ROUNDING, _FAR = 200.0, 4e4, 1e5


class LightSample(AbstractModule):
    """The light that one light sends to a point, without shadows.

    **Arguments:**

    - `rays`: shadow rays from the point to the light, as wide as the pixel's footprint; surfaces
      between `near` and `far` cast a shadow.
    - `irradiance`: power per area on a surface that faces the light.
    - `ambient`: radiance that arrives evenly from all directions.
    """

    rays: Ray
    irradiance: Float[Array, "*points lights 3"] = eqx.field(converter=as_float_leaf)
    ambient: Float[Array, "*points 3"] = eqx.field(converter=as_float_leaf)


class AbstractLight(AbstractModule):
    """A source of light on surfaces. It is a node of the scene: transforms above it move it.

    Example: a lamp whose light falls off linearly instead of with the square of the distance.

    ```python
    class SoftLamp(sg.lights.AbstractLight):
        position: jax.Array = eqx.field(converter=jnp.asarray)
        power: jax.Array = eqx.field(converter=jnp.asarray)

        def sample(self, point, d_point):
            way = self.position - point
            # From the point (t = 0) to the lamp (t = 1), where the cone has narrowed to a point.
            toward = way / jnp.linalg.norm(way)
            rays = sg.rays.Ray(point, way, toward, d_point, -d_point, 1e-4, 1.0)
            rays = jax.tree.map(lambda x: x[None], rays)
            irradiance = self.power / jnp.linalg.norm(way)
            return sg.lights.LightSample(rays, irradiance[None], jnp.zeros(3))

        def moved(self, transform):
            return SoftLamp(transform.point(self.position), self.power)


    lamp = SoftLamp([0.0, 0.0, 4.0], [9.0, 9.0, 8.0])
    ```
    """

    @abc.abstractmethod
    def sample(self, point: Vector, d_point: Float[Array, "2 3"]) -> LightSample:
        """Computes the light that arrives at a point.

        **Arguments:**

        - `point`: a point on a surface, in the light's frame.
        - `d_point`: the sides of the parallelogram that a pixel covers there, in rows.

        **Returns:**

        Shadow rays and the light along them, with a leading axis over any fixed number of rays.
        """

    @abc.abstractmethod
    def moved(self, transform: AbstractTransform) -> "AbstractLight":
        """Transforms the light.

        **Arguments:**

        - `transform`: parent from child.

        **Returns:**

        The light in the parent's frame, with its power unchanged: distances are in the parent's
        units.
        """


class AbstractEnvironment(AbstractLight):
    """Light from all around the scene, which smooth surfaces mirror.

    Highlights do not show the directions of its `sample`, but what `reflect` returns.
    """

    @abc.abstractmethod
    def prepare(self) -> "AbstractEnvironment":
        """Computes what all points share, once for a picture."""

    @abc.abstractmethod
    def reflect(self, normal: Vector, view: Vector) -> Float[Array, "levels 3"]:
        """Averages the light that a surface reflects to the eye, over lobes of many widths.

        The surface's roughness goes in equal steps from 0, a mirror, to 1; there are no shadows.
        """

    @abc.abstractmethod
    def mirror(self, direction: Vector, roughness: Scalar) -> Color:
        """Averages the light from about a direction, as a surface of a roughness reflects it."""


def rays_to(position: Vector, point: Vector, d_point: Float[Array, "2 3"]) -> Ray:
    """Makes the shadow ray, with a leading axis, to a position (`t = 1`), where its width ends."""
    # x(t) = point + t (position - point); its footprint (1 - t) d_point is zero at the position.
    return _one_ray(point, position - point, d_point, -d_point, 1.0)


def rays_along(
    direction: Vector, point: Vector, d_point: Float[Array, "2 3"], far: float, spread: float = 0.0
) -> Ray:
    """Makes the shadow ray, with a leading axis, along a unit vector; it widens by `spread`.

    Its `t` counts lengths of the pixel, so that it is the same in all units; `far` is a distance.
    """
    # Pixels' sides, but at least what rounding of the point needs.
    place, sides = jax.lax.stop_gradient((point, d_point))
    side = jnp.sqrt(jnp.min(jnp.sum(sides**2, axis=-1)))
    rounding = _ROUNDING * jnp.finfo(point.dtype).eps * jnp.max(jnp.abs(place))
    unit = jnp.maximum(_SIDES * side, rounding)
    unit = jnp.where(unit > 0, unit, 1)
    # The footprint d_point + t spread (u, v), with unit vectors u and v across the direction.
    aside = spread * unit * jnp.stack(tangents(direction))
    return _one_ray(point, unit * direction, d_point, aside, jnp.minimum(far / unit, _FAR))


def _one_ray(
    origin: Vector, direction: Vector, d_origin: Array, d_direction: Array, far: ScalarLike
) -> Ray:
    ends = (jnp.asarray(x, origin.dtype) for x in (_NEAR, far))
    view = safe_normalise(direction)
    parts = origin, direction, view, d_origin, d_direction, *ends
    return Ray(*(part[None] for part in parts))
