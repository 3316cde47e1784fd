import abc
from typing import ClassVar

import jax.numpy as jnp
from equinox import AbstractClassVar

from .._typing import Array, Float, Scalar
from ..numerics import AbstractModule
from ..rays import Hit


class AbstractCoordinates(AbstractModule):
    """Which coordinates of a hit a pattern is a function of."""

    dimensions: AbstractClassVar[int]

    @abc.abstractmethod
    def __call__(self, hit: Hit) -> tuple[Float[Array, " n"], Float[Array, "n 2"]]:
        """Coordinates, and how they change from pixel to pixel.

        **Arguments:**

        - `hit`: on a surface.

        **Returns:**

        `(place, slopes)`: a row of slopes for every coordinate, by the pixel's x and y.
        """


class OnSurface(AbstractCoordinates):
    """The surface's own coordinates `uv`, for shapes that have them."""

    dimensions: ClassVar[int] = 2

    def __call__(self, hit: Hit) -> tuple[Float[Array, " n"], Float[Array, "n 2"]]:
        return hit.uv, hit.duv.T


class InSpace(AbstractCoordinates):
    """Places in the shape's frame: the pattern is solid, and the surface cuts through it."""

    dimensions: ClassVar[int] = 3

    def __call__(self, hit: Hit) -> tuple[Float[Array, " n"], Float[Array, "n 2"]]:
        return hit.place, hit.d_place.T


def footprint_area(slopes: Float[Array, "n 2"]) -> Scalar:
    """How much of a pattern a pixel covers, by the sides of its parallelogram.

    **Arguments:**

    - `slopes`: of the coordinates by the pixel's x and y.

    **Returns:**

    The mean square of both sides: smooth, and the area where they are equal and at right angles.
    """
    return jnp.sum(slopes**2) / 2
