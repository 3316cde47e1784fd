import equinox as eqx

from .._typing import Array, Float, Int
from ..numerics import AbstractModule, as_float_leaf


class Layers(AbstractModule):
    """What rays see of surfaces: thin layers, sorted from near to far.

    **Arguments:**

    - `t`: along the ray.
    - `alpha`: opacity: the part of the light from behind that each layer stops.
    - `rgb`: colours, not multiplied by opacity.
    - `overflow`: how many surfaces more a ray would have seen, had there been room for them.
    - `normal`: of length one, in the world, turned to the eye; `None` where nobody asked.
    """

    t: Float[Array, "*rays layers"] = eqx.field(converter=as_float_leaf)
    alpha: Float[Array, "*rays layers"] = eqx.field(converter=as_float_leaf)
    rgb: Float[Array, "*rays layers 3"] = eqx.field(converter=as_float_leaf)
    overflow: Int[Array, "*rays"]
    normal: Float[Array, "*rays layers 3"] | None = None
