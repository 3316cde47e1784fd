import abc

import equinox as eqx

from .._typing import Array, Bool, Color, Float, Scalar, Vector
from ..numerics import AbstractModule, as_float_leaf
from ..rays import Hit
from ._albedo import AbstractAlbedoShader


class ScatterSample(AbstractModule):
    """A random direction in which a surface scatters the light of one path.

    **Arguments:**

    - `direction`: the unit vector from the surface along which the path goes on.
    - `weight`: the BSDF times the cosine of the direction, over the density; of a direction that
      has no density (a mirror's), the part of the light that goes there, over its probability.
    - `density`: the density of the direction by solid angle, as `AbstractMaterial.density`; zero
      where it has none.
    - `is_specular`: true for a direction that has no density, which no lamp could be sampled for.
    - `is_diffuse`: true for a direction of scattering below the surface, which sees environments,
      but no other background.
    """

    direction: Float[Array, "*rays 3"] = eqx.field(converter=as_float_leaf)
    weight: Float[Array, "*rays 3"] = eqx.field(converter=as_float_leaf)
    density: Float[Array, "*rays"] = eqx.field(converter=as_float_leaf)
    is_specular: Bool[Array, "*rays"]
    is_diffuse: Bool[Array, "*rays"]


class SecondaryRays(AbstractModule):
    """The directions in which a surface shows what is around it: reflections and refractions.

    **Arguments:**

    - `direction`: unit vectors from the surface. Their derivatives by normal and view widen the
      cones: a curved mirror shows more than a flat one.
    - `weight`: the part of the light from there that leaves the surface towards the eye.
    - `spread`: the side of the square, at a distance of one, over which roughness blurs the cone.
    - `roughness`: the roughness of the lobe, from 0 to 1, for which panoramas are averaged.
    - `lamps`: the part of the emission of lamps with a size that the cone shows. The shader has to
      add the rest of it, from `Irradiance.lamps`.
    """

    direction: Float[Array, "*rays cones 3"] = eqx.field(converter=as_float_leaf)
    weight: Float[Array, "*rays cones 3"] = eqx.field(converter=as_float_leaf)
    spread: Float[Array, "*rays cones"] = eqx.field(converter=as_float_leaf)
    roughness: Float[Array, "*rays cones"] = eqx.field(converter=as_float_leaf)
    lamps: Float[Array, "*rays cones"] = eqx.field(converter=as_float_leaf)


class AbstractMaterial(AbstractAlbedoShader):
    """A shader that says how its surface scatters light, so that `Path` follows light from it.

    Its colour, `__call__`, is what it emits, and what it scatters of the light in `lights`. Under
    `Path`, shaders that are no materials show that, too, and paths end there.
    """

    @abc.abstractmethod
    def scatter(self, hit: Hit, view: Vector, light: Vector) -> Color:
        """Computes the BSDF times the cosine of the light's direction.

        What has no density, such as the reflection of a perfect mirror, is not part of it.

        **Arguments:**

        - `hit`: the intersection of a ray with the surface; its normal is turned to the eye.
        - `view`: the direction of the ray, a unit vector towards the surface.
        - `light`: the unit vector from the surface to the light, on either side of it.

        **Returns:**

        Red, green and blue, per steradian; zero where nothing is scattered.
        """

    @abc.abstractmethod
    def density(self, hit: Hit, view: Vector, light: Vector) -> Scalar:
        """Computes the density by solid angle with which `sample` chooses a direction.

        **Arguments:**

        - `hit`, `view`, `light`: as for `scatter`.

        **Returns:**

        The density per steradian, which is positive wherever `scatter` is.
        """

    @abc.abstractmethod
    def sample(self, hit: Hit, view: Vector, uniform: Float[Array, "3"]) -> ScatterSample:
        """Chooses a direction in which light is scattered, about as often as much light is.

        **Arguments:**

        - `hit`, `view`: as for `scatter`.
        - `uniform`: three random numbers from 0 to 1.

        **Returns:**

        The direction, its weight and its density.
        """


class AbstractReflectiveMaterial(AbstractMaterial):
    """A material that shows its surroundings, in reflection or behind it.

    The closed forms follow one cone along each of its secondary rays, and add what these see.
    """

    @abc.abstractmethod
    def secondary(self, hit: Hit, view: Vector) -> SecondaryRays:
        """Computes the directions in which the surface shows its surroundings.

        **Arguments:**

        - `hit`, `view`: as for `scatter`.

        **Returns:**

        Any fixed number of cones, along a leading axis.
        """
