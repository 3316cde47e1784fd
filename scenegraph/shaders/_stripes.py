from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp

from .._typing import Array, Color, Float, Scalar, Vector
from ..images import as_color
from ..numerics import as_float_leaf, filtered_square_wave, require_finite, require_positive
from ..rays import Hit, Irradiance
from ._base import AbstractShader
from ._coordinates import AbstractCoordinates, OnSurface


class Stripes(AbstractShader):
    """Stripes of two colours, averaged over the pixel in closed form.

    The mean is exact for every footprint, because the stripes are a function of one coordinate.

    **Arguments:**

    - `scale`: the width of a stripe, in units of the coordinates.
    - `color_a`, `color_b`: the colours of the stripe that begins at zero, and of its neighbours.
    - `angle`: the direction in which the colours alternate, in radians from the first coordinate
      towards the second.
    - `coordinates`: `OnSurface()`, or `InSpace()`, where the stripes are slabs.
    """

    scale: Scalar = eqx.field(converter=as_float_leaf, default=1.0)
    color_a: Color = eqx.field(converter=as_color, default=(0.9, 0.9, 0.9))
    color_b: Color = eqx.field(converter=as_color, default=(0.1, 0.1, 0.1))
    angle: Scalar = eqx.field(converter=as_float_leaf, default=0.0)
    coordinates: AbstractCoordinates = OnSurface()

    needs_light_behind: ClassVar[bool] = False

    def __check_init__(self):
        require_positive(self, "scale")
        require_finite(self, "color_a", "color_b", "angle")

    def __call__(self, hit: Hit, view: Vector, lights: Irradiance) -> Color:
        del view, lights
        position, derivatives = self.coordinates(hit)
        # docs/surfaces.md, "Filtered patterns": the mean of a square wave in a linear argument.
        wave = filtered_square_wave(self._across(position), self._across(derivatives))
        return (self.color_a + self.color_b) / 2 + wave * (self.color_a - self.color_b) / 2

    def _across(self, x: Float[Array, "n *rest"]) -> Float[Array, "*rest"]:
        """Measures across the stripes, in units of their width."""
        return (jnp.cos(self.angle) * x[0] + jnp.sin(self.angle) * x[1]) / self.scale
