import abc
from typing import ClassVar

import jax.numpy as jnp
from equinox import AbstractClassVar

from .._typing import Array, Float, Scalar
from ..numerics import AbstractModule
from ..rays import Hit


class AbstractCoordinates(AbstractModule):
    """The coordinates of a hit that a pattern is a function of; `dimensions` is their number."""

    dimensions: AbstractClassVar[int]

    @abc.abstractmethod
    def __call__(self, hit: Hit) -> tuple[Float[Array, " n"], Float[Array, "n 2"]]:
        """Returns the coordinates of a hit, and their derivatives by the pixel's coordinates.

        **Arguments:**

        - `hit`: one hit.

        **Returns:**

        `(position, derivatives)`: the derivatives by the pixel's x and y, a row per coordinate.
        """


class OnSurface(AbstractCoordinates):
    """The surface's own coordinates `uv`, for shapes that have them."""

    dimensions: ClassVar[int] = 2

    def __call__(self, hit: Hit) -> tuple[Float[Array, " n"], Float[Array, "n 2"]]:
        return hit.uv, hit.duv.T


class InSpace(AbstractCoordinates):
    """Positions in the shape's frame: a solid pattern, which the surface cuts."""

    dimensions: ClassVar[int] = 3

    def __call__(self, hit: Hit) -> tuple[Float[Array, " n"], Float[Array, "n 2"]]:
        return hit.place, hit.d_place.T


def footprint_area(derivatives: Float[Array, "n 2"]) -> Scalar:
    """Returns the mean square of the footprint's sides: smooth, and the area of a square."""
    # (|p_x|^2 + |p_y|^2) / 2, not |p_x x p_y|, which is zero for a footprint without width.
    return jnp.sum(derivatives**2) / 2
