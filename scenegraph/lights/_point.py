import equinox as eqx
import jax.numpy as jnp

from .._typing import Array, Color, Float, Vector
from ..images import as_color
from ..numerics import as_float_leaf, dot, require_finite, require_not_negative, safe_divide
from ..transforms import AbstractTransform
from ._base import AbstractLight, LightSample, rays_to


class PointLight(AbstractLight):
    """A lamp too small to be visible, with equal intensity in all directions.

    **Arguments:**

    - `position`: the position.
    - `intensity`: power per solid angle; the irradiance is this over the squared distance.
    """

    position: Vector = eqx.field(converter=as_float_leaf)
    intensity: Color = eqx.field(converter=as_color)

    def __check_init__(self):
        require_finite(self, "position")
        require_not_negative(self, "intensity")

    def sample(self, point: Vector, d_point: Float[Array, "2 3"]) -> LightSample:
        away = self.position - point
        squared = dot(away, away)
        # The inverse-square law: irradiance = intensity / distance^2.
        irradiance = self.intensity * safe_divide(jnp.ones_like(squared), squared)
        rays = rays_to(self.position, point, d_point)
        return LightSample(rays, irradiance[None], jnp.zeros_like(irradiance))

    def moved(self, transform: AbstractTransform) -> AbstractLight:
        return eqx.tree_at(lambda x: x.position, self, transform.point(self.position))
