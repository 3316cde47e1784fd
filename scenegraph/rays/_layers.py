import equinox as eqx

from .._typing import Array, Float, Int
from ..numerics import AbstractModule, as_float_leaf


class Layers(AbstractModule):
    """The surfaces along rays as thin layers, sorted from near to far.

    **Arguments:**

    - `t`: ray parameters of the layers.
    - `alpha`: opacities: the part of the light from behind that each layer blocks.
    - `rgb`: colours, not multiplied by opacity.
    - `overflow`: number of further surfaces that a ray would have shown, beyond its layers.
    - `normal`: unit normals in the world frame, turned to the eye; `None` unless requested.
    """

    t: Float[Array, "*rays layers"] = eqx.field(converter=as_float_leaf)
    alpha: Float[Array, "*rays layers"] = eqx.field(converter=as_float_leaf)
    rgb: Float[Array, "*rays layers 3"] = eqx.field(converter=as_float_leaf)
    overflow: Int[Array, "*rays"]
    normal: Float[Array, "*rays layers 3"] | None = None
