import abc

from .._typing import Array, Float
from ..numerics import AbstractModule
from ..rays import Hit


class AbstractCoordinates(AbstractModule):
    """Which coordinates of a hit a pattern is a function of."""

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

    def __call__(self, hit: Hit) -> tuple[Float[Array, " n"], Float[Array, "n 2"]]:
        return hit.uv, hit.duv.T


class InSpace(AbstractCoordinates):
    """Places in the shape's frame: the pattern is solid, and the surface cuts through it."""

    def __call__(self, hit: Hit) -> tuple[Float[Array, " n"], Float[Array, "n 2"]]:
        return hit.place, hit.d_place.T
