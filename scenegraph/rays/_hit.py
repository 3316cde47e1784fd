import equinox as eqx

from .._typing import Array, Float
from ..numerics import AbstractModule, as_float_leaf


class Hit(AbstractModule):
    """Where a ray meets a surface.

    **Arguments:**

    - `t`: along the ray.
    - `point`, `normal`: on the surface; the normal has length one.
    - `uv`: surface coordinates.
    - `duv`: their derivatives by the pixel's x (first row) and y (second row).
    - `coverage`: the part of the pixel that the surface covers.
    """

    t: Float[Array, "*rays"] = eqx.field(converter=as_float_leaf)
    point: Float[Array, "*rays 3"] = eqx.field(converter=as_float_leaf)
    normal: Float[Array, "*rays 3"] = eqx.field(converter=as_float_leaf)
    uv: Float[Array, "*rays 2"] = eqx.field(converter=as_float_leaf)
    duv: Float[Array, "*rays 2 2"] = eqx.field(converter=as_float_leaf)
    coverage: Float[Array, "*rays"] = eqx.field(converter=as_float_leaf)
