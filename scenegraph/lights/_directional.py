import math

import equinox as eqx
import jax.numpy as jnp

from .._typing import Array, Color, Float, Vector
from ..images import as_color
from ..numerics import as_float_leaf, require_nonzero, require_not_negative, safe_normalise
from ..transforms import AbstractTransform
from ._base import AbstractLight, LightSample, rays_along


class DirectionalLight(AbstractLight):
    """A light infinitely far away, such as the sun.

    **Arguments:**

    - `direction`: the direction of the light's travel, of any length but zero.
    - `irradiance`: power per area on a surface that faces the light.
    - `reach`: the largest distance of surfaces that cast shadows, in world units; by default there
      is no limit but 20 million pixels' sides; static.
    """

    direction: Vector = eqx.field(converter=as_float_leaf)
    irradiance: Color = eqx.field(converter=as_color)
    reach: float = eqx.field(static=True, default=math.inf)

    def __check_init__(self):
        require_nonzero(self, "direction")
        require_not_negative(self, "irradiance")

    def sample(self, point: Vector, d_point: Float[Array, "2 3"]) -> LightSample:
        rays = rays_along(-safe_normalise(self.direction), point, d_point, self.reach)
        return LightSample(rays, self.irradiance[None], jnp.zeros_like(self.irradiance))

    def moved(self, transform: AbstractTransform) -> AbstractLight:
        direction = transform.direction(self.direction)
        return eqx.tree_at(lambda x: x.direction, self, direction)
