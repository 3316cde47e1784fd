from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp

from .._typing import Color, Scalar, Vector
from ..images import as_color
from ..numerics import as_float_leaf, filtered_square_wave, require_positive
from ..rays import Hit, Irradiance
from ._base import AbstractShader
from ._coordinates import AbstractCoordinates, OnSurface


class Checker(AbstractShader):
    """A checkerboard, averaged over the pixel in closed form: its scale has a gradient.

    It is the product of one square wave per axis, each of which is averaged exactly. So is the
    product where the pixel's sides on the surface lie along the coordinates. Elsewhere the waves
    count as uncorrelated within a pixel, and the mean is off by at most
    `|color_a - color_b| / 2 * sqrt((1 - m^2) (1 - n^2))`, `m` and `n` being the waves' means.

    **Arguments:**

    - `scale`: the side of a cell, in units of the coordinates.
    - `color_a`, `color_b`: the colours of the cell that begins at zero, and of its neighbours.
    - `coordinates`: squares `OnSurface()`, or cubes `InSpace()`.

    **Source:** `docs/surfaces.md`, "Filtered patterns".
    """

    scale: Scalar = eqx.field(converter=as_float_leaf, default=1.0)
    color_a: Color = eqx.field(converter=as_color, default=(0.9, 0.9, 0.9))
    color_b: Color = eqx.field(converter=as_color, default=(0.1, 0.1, 0.1))
    coordinates: AbstractCoordinates = OnSurface()

    needs_light_behind: ClassVar[bool] = False

    def __check_init__(self):
        require_positive(self, "scale")

    def __call__(self, hit: Hit, view: Vector, lights: Irradiance) -> Color:
        del view, lights
        position, derivatives = self.coordinates(hit)
        # docs/surfaces.md, "Filtered patterns": the product over axes of the mean of a wave that is
        # +1 in the cell at zero and -1 in its neighbours.
        waves = jax.vmap(filtered_square_wave)(position / self.scale, derivatives / self.scale)
        wave = jnp.prod(waves)
        return (self.color_a + self.color_b) / 2 + wave * (self.color_a - self.color_b) / 2
