import jax.numpy as jnp

from .._typing import Color, Vector
from ..rays import Hit, Irradiance
from ._base import AbstractShader
from ._coordinates import AbstractCoordinates, OnSurface


class UV(AbstractShader):
    """The fractional parts of the coordinates as red, green and blue, to look at them.

    **Arguments:**

    - `coordinates`: `OnSurface()`, without blue, or `InSpace()`.
    """

    coordinates: AbstractCoordinates = OnSurface()

    def __call__(self, hit: Hit, view: Vector, lights: Irradiance) -> Color:
        del view, lights
        place, _ = self.coordinates(hit)
        return jnp.zeros(3, place.dtype).at[: place.shape[0]].set(place - jnp.floor(place))
