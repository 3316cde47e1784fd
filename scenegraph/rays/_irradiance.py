import equinox as eqx
import jax.numpy as jnp
from jax.typing import DTypeLike

from .._typing import Array, Float
from ..numerics import AbstractModule, as_float_leaf


class Irradiance(AbstractModule):
    """The light that arrives at a point of a surface, shadows included.

    **Arguments:**

    - `direction`: unit vectors from the point to the lights.
    - `irradiance`: power per area that each light sends through a surface that faces it.
    - `ambient`: radiance that arrives evenly from all directions.
    """

    direction: Float[Array, "*rays lights 3"] = eqx.field(converter=as_float_leaf)
    irradiance: Float[Array, "*rays lights 3"] = eqx.field(converter=as_float_leaf)
    ambient: Float[Array, "*rays 3"] = eqx.field(converter=as_float_leaf)


def no_light(dtype: DTypeLike = float) -> Irradiance:
    """Returns the irradiance of a point without lights."""
    none = jnp.zeros((0, 3), dtype)
    return Irradiance(none, none, jnp.zeros(3, dtype))
