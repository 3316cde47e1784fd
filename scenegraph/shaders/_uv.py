from typing import ClassVar

import jax.numpy as jnp

from .._typing import Color, Vector
from ..rays import Hit, Irradiance
from ._base import AbstractShader
from ._coordinates import AbstractCoordinates, OnSurface


class UV(AbstractShader):
    """The fractional parts of the coordinates as red, green and blue, for debugging.

    **Arguments:**

    - `coordinates`: `OnSurface()`, which leaves blue at zero, or `InSpace()`.
    """

    coordinates: AbstractCoordinates = OnSurface()

    needs_light_behind: ClassVar[bool] = False

    def __call__(self, hit: Hit, view: Vector, lights: Irradiance) -> Color:
        del view, lights
        x, _ = self.coordinates(hit)
        return jnp.concatenate([x - jnp.floor(x), jnp.zeros(3 - x.shape[0], x.dtype)])
