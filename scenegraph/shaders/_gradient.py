from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp

from .._typing import Array, Color, Float, Scalar, Vector
from ..images import as_color
from ..numerics import as_float_leaf, descending, dot, magnitude, require_finite, safe_divide
from ..rays import Hit, Irradiance
from ._base import AbstractShader
from ._coordinates import AbstractCoordinates, OnSurface


# The least ratio of the shorter to the longer side of a pixel: the mean divides by the shorter one.
_NARROWEST = 1e-3


class Gradient(AbstractShader):
    """A ramp from one colour to another, averaged over the pixel in closed form.

    Before `start` and beyond `end` the colours are constant. The mean is exact for every footprint.

    **Arguments:**

    - `start`, `end`: the positions, in the coordinates, at which the ramp begins and ends.
    - `color_a`, `color_b`: the colours at `start` and at `end`.
    - `coordinates`: `OnSurface()`, with positions of two numbers, or `InSpace()`, with three.
    """

    start: Float[Array, " n"] = eqx.field(converter=as_float_leaf, default=(0.0, 0.0))
    end: Float[Array, " n"] = eqx.field(converter=as_float_leaf, default=(1.0, 0.0))
    color_a: Color = eqx.field(converter=as_color, default=(0.9, 0.9, 0.9))
    color_b: Color = eqx.field(converter=as_color, default=(0.1, 0.1, 0.1))
    coordinates: AbstractCoordinates = OnSurface()

    needs_light_behind: ClassVar[bool] = False

    def __check_init__(self):
        require_finite(self, "start", "end", "color_a", "color_b")
        wanted = self.coordinates.dimensions
        if self.start.shape != (wanted,):
            raise ValueError(
                f"`Gradient.start` must have {wanted} numbers, like the coordinates "
                f"{type(self.coordinates).__name__}; got {self.start.shape[0]}."
            )

    def __call__(self, hit: Hit, view: Vector, lights: Irradiance) -> Color:
        del view, lights
        position, derivatives = self.coordinates(hit)
        # x = (p - start) . r / |r|^2 with r = end - start; a ramp of no length is `color_a`.
        ramp = self.end - self.start
        along = safe_divide(ramp, jnp.broadcast_to(dot(ramp, ramp), ramp.shape))
        x, gradient = (
            dot(along, position - self.start),
            jax.vmap(dot, (None, 1))(along, derivatives),
        )
        # The mean of clip(x, 0, 1) over the pixel is that of max(x, 0) - max(x - 1, 0).
        share = _mean_positive_part(x, gradient) - _mean_positive_part(x - 1, gradient)
        return self.color_a + share * (self.color_b - self.color_a)


def _mean_positive_part(x: Scalar, gradient: Float[Array, "2"]) -> Scalar:
    """Returns the mean over a pixel of `max(x, 0)` for an `x` that is linear there."""
    # The values of x over the pixel have a trapezoid as density, with foot a + b and top a - b for
    # a >= b, the sizes of the derivatives. It is even, so that the mean is max(x, 0) plus its
    # second integral at the distance from zero. With r = max((a + b) / 2 - |x|, 0), c = min(r, b):
    # mean = max(x, 0) + (c^3 / (6 b) + r (r - c) / 2) / a.
    # At zero, where it has no knot, both derivatives are those of x < 0.
    a, b = descending(magnitude(gradient))
    wide = jnp.maximum(a, jnp.finfo(x.dtype).tiny ** 0.25)
    narrow = jnp.maximum(b, _NARROWEST * wide)
    rest = jnp.maximum((wide + narrow) / 2 + jnp.where(x > 0, -x, x), 0)
    corner = jnp.minimum(rest, narrow)
    flat = rest - corner
    within = corner**2 * (corner / narrow) / 6 + (corner + flat) * flat / 2
    return jnp.where(x > 0, x, 0) + within / wide
