import equinox as eqx
import jax
import jax.numpy as jnp

from .._typing import Array, Color, Float, Vector
from ..images import as_color
from ..numerics import require_not_negative
from ..transforms import AbstractTransform
from ._base import AbstractLight, LightSample, rays_along


class AmbientLight(AbstractLight):
    """Light that arrives evenly from all directions, and casts no shadow.

    **Arguments:**

    - `radiance`: the radiance from every direction, which a white diffuse surface shows.
    """

    radiance: Color = eqx.field(converter=as_color, default=(1.0, 1.0, 1.0))

    def __check_init__(self):
        require_not_negative(self, "radiance")

    def sample(self, point: Vector, d_point: Float[Array, "2 3"]) -> LightSample:
        # No rays: the leading axis has length 0.
        none = jax.tree.map(lambda x: x[:0], rays_along(jnp.zeros_like(point), point, d_point, 1.0))
        return LightSample(none, jnp.zeros((0, 3), point.dtype), self.radiance)

    def moved(self, transform: AbstractTransform) -> AbstractLight:
        del transform
        return self
