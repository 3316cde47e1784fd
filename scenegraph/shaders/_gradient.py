import equinox as eqx
import jax
import jax.numpy as jnp

from .._typing import Array, Color, Float, Scalar, Vector
from ..numerics import as_float_leaf, dot, require_finite, safe_divide
from ..rays import Hit, Irradiance
from ._base import AbstractShader
from ._coordinates import AbstractCoordinates, OnSurface


# A pixel whose sides are less unequal than this is taken as one whose sides are, because the mean
# divides by the shorter one.
_NARROWEST = 1e-3


class Gradient(AbstractShader):
    """A ramp from one colour to another, averaged over the pixel in closed form.

    Before `start` and beyond `end` the colours stay. The mean is exact for every footprint.

    **Arguments:**

    - `start`, `end`: places, in the coordinates, where the ramp begins and ends.
    - `color_a`, `color_b`: at `start`, and at `end`.
    - `coordinates`: `OnSurface()`, where places have two numbers, or `InSpace()`, with three.
    """

    start: Float[Array, " n"] = eqx.field(converter=as_float_leaf, default=(0.0, 0.0))
    end: Float[Array, " n"] = eqx.field(converter=as_float_leaf, default=(1.0, 0.0))
    color_a: Color = eqx.field(converter=as_float_leaf, default=(0.9, 0.9, 0.9))
    color_b: Color = eqx.field(converter=as_float_leaf, default=(0.1, 0.1, 0.1))
    coordinates: AbstractCoordinates = OnSurface()

    def __check_init__(self):
        require_finite(self, "start", "end", "color_a", "color_b")
        wanted = self.coordinates.dimensions
        if self.start.shape != (wanted,):
            raise ValueError(
                f"`Gradient.start` must have the {wanted} numbers of "
                f"{type(self.coordinates).__name__}; got {self.start.shape[0]}."
            )

    def __call__(self, hit: Hit, view: Vector, lights: Irradiance) -> Color:
        del view, lights
        place, slopes = self.coordinates(hit)
        way = self.end - self.start
        # Per unit of the ramp; a ramp of no length at all is `color_a` everywhere.
        along = safe_divide(way, jnp.broadcast_to(dot(way, way), way.shape))
        slope = jax.vmap(dot, (None, 1))(along, slopes)
        share = _filtered_ramp(dot(along, place - self.start), slope)
        return self.color_a + share * (self.color_b - self.color_a)


def _filtered_ramp(x: Scalar, slope: Float[Array, "2"]) -> Scalar:
    """The mean over a pixel of `clip(x, 0, 1)` for an `x` that is linear there."""
    return _mean_positive_part(x, slope) - _mean_positive_part(x - 1, slope)


def _mean_positive_part(x: Scalar, slope: Float[Array, "2"]) -> Scalar:
    """The mean over a pixel of `max(x, 0)`.

    The kernel is a trapezoid and even, so that the mean is `max(x, 0)` and something that depends
    on the distance from zero alone: the trapezoid's second integral, all terms of which are
    positive.
    """
    a, b = jnp.abs(slope[0]), jnp.abs(slope[1])
    wide = jnp.maximum(jnp.maximum(a, b), jnp.finfo(x.dtype).tiny ** 0.25)
    narrow = jnp.maximum(jnp.minimum(a, b), _NARROWEST * wide)
    rest = jnp.maximum((wide + narrow) / 2 - jnp.abs(x), 0)
    corner = jnp.minimum(rest, narrow)
    flat = rest - corner
    within = corner**2 * (corner / narrow) / 6 + (corner + flat) * flat / 2
    return jnp.maximum(x, 0) + within / wide
