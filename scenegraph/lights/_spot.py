import equinox as eqx
import jax.numpy as jnp

from .._typing import Array, Color, Float, Scalar, Vector
from ..numerics import (
    as_float_leaf,
    dot,
    require_finite,
    require_nonzero,
    require_positive,
    safe_divide,
    safe_normalise,
)
from ..transforms import AbstractTransform
from ._base import AbstractLight, LightSample, rays_to


class SpotLight(AbstractLight):
    """A lamp that shines in a cone, with a soft edge.

    **Arguments:**

    - `position`: where it is.
    - `direction`: of the cone's axis, away from the lamp; of any length but zero.
    - `intensity`: power per solid angle on the axis.
    - `angle`: between the axis and the end of the light, in radians.
    - `softness`: the outer part of the cone, as a fraction of it, over which light fades.
    """

    position: Vector = eqx.field(converter=as_float_leaf)
    direction: Vector = eqx.field(converter=as_float_leaf)
    intensity: Color = eqx.field(converter=as_float_leaf)
    angle: Scalar = eqx.field(converter=as_float_leaf, default=0.5)
    softness: Scalar = eqx.field(converter=as_float_leaf, default=0.2)

    def __check_init__(self):
        require_finite(self, "position", "intensity")
        require_nonzero(self, "direction")
        require_positive(self, "angle", "softness")

    def sample(self, point: Vector, d_point: Float[Array, "2 3"]) -> LightSample:
        away = point - self.position
        squared = dot(away, away)
        falloff = safe_divide(self._fade(safe_normalise(away)), squared)
        rays = rays_to(self.position, point, d_point)
        return LightSample(rays, (self.intensity * falloff)[None], jnp.zeros_like(self.intensity))

    def _fade(self, outward: Vector) -> Scalar:
        """From 1 at the inner edge of the soft part to 0 at the outer, smoothly, in the cosine."""
        cosine = dot(outward, safe_normalise(self.direction))
        outer, inner = jnp.cos(self.angle), jnp.cos(self.angle * (1 - self.softness))
        share = jnp.clip(safe_divide(cosine - outer, inner - outer), 0, 1)
        return share**2 * (3 - 2 * share)

    def moved(self, transform: AbstractTransform) -> AbstractLight:
        return SpotLight(
            transform.point(self.position),
            transform.direction(self.direction),
            self.intensity,
            self.angle,
            self.softness,
        )
