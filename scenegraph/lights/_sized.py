import abc

import equinox as eqx

from .._typing import Array, Float, Scalar, Vector
from ..numerics import AbstractModule, as_float_leaf
from ..rays import LampPolygons
from ._base import AbstractLight


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


class AbstractSizedLight(AbstractLight):
    """A lamp with a size: it is visible, throws soft shadows, and has a shape in highlights.

    The shadow ray of `sample` is as wide at the lamp as the lamp, so that what an occluder covers
    of it is the part of the lamp that it hides.
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
