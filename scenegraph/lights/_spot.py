import equinox as eqx
import jax.numpy as jnp

from .._typing import Array, Color, Float, Scalar, Vector
from ..images import as_color
from ..numerics import (
    as_float_leaf,
    dot,
    require_at_most,
    require_finite,
    require_nonzero,
    require_not_negative,
    require_positive,
    safe_divide,
    safe_normalise,
)
from ..transforms import AbstractTransform
from ._base import AbstractLight, LightSample, rays_to


class SpotLight(AbstractLight):
    """A lamp that emits into a cone, with a soft edge.

    **Arguments:**

    - `position`: the position.
    - `direction`: the cone's axis, away from the lamp; of any length but zero.
    - `intensity`: power per solid angle on the axis.
    - `angle`: the cone's half angle, between axis and edge, in radians.
    - `softness`: the fraction of the half angle over which the light fades at the edge.
    """

    position: Vector = eqx.field(converter=as_float_leaf)
    direction: Vector = eqx.field(converter=as_float_leaf)
    intensity: Color = eqx.field(converter=as_color)
    angle: Scalar = eqx.field(converter=as_float_leaf, default=0.5)
    softness: Scalar = eqx.field(converter=as_float_leaf, default=0.2)

    def __check_init__(self):
        require_finite(self, "position")
        require_not_negative(self, "intensity")
        require_nonzero(self, "direction")
        require_positive(self, "angle", "softness")
        require_at_most(self, jnp.pi, "angle")

    def sample(self, point: Vector, d_point: Float[Array, "2 3"]) -> LightSample:
        away = point - self.position
        squared = dot(away, away)
        # The inverse-square law: irradiance = intensity * fade / distance^2.
        falloff = safe_divide(self._fade(safe_normalise(away)), squared)
        rays = rays_to(self.position, point, d_point)
        return LightSample(rays, (self.intensity * falloff)[None], jnp.zeros_like(self.intensity))

    def _fade(self, outward: Vector) -> Scalar:
        """Returns 1 inside of the soft edge and 0 outside; in between `3 x^2 - 2 x^3`."""
        cosine = dot(outward, safe_normalise(self.direction))
        outer, inner = jnp.cos(self.angle), jnp.cos(self.angle * (1 - self.softness))
        # x is linear in the cosine, from 0 at the outer to 1 at the inner angle of the soft edge.
        share = jnp.clip(safe_divide(cosine - outer, inner - outer), 0, 1)
        return share**2 * (3 - 2 * share)

    def moved(self, transform: AbstractTransform) -> AbstractLight:
        position, direction = transform.point(self.position), transform.direction(self.direction)
        return eqx.tree_at(lambda x: (x.position, x.direction), self, (position, direction))
