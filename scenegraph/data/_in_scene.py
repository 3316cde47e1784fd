import equinox as eqx

from .._typing import Array, Float, Int
from ..numerics import AbstractModule, as_float_leaf


class CamerasInScene(AbstractModule):
    """Cameras that are nodes of the scene that is fitted: they can be fitted too.

    **Arguments:**

    - `paths`: one a picture.
    """

    paths: tuple[str, ...] = eqx.field(static=True)


class Pixels(AbstractModule):
    """Pixels of cameras in the scene; they become rays once the scene is at hand.

    **Arguments:**

    - `frame`: the number of each pixel's picture.
    - `place`: coordinates `(x, y)` in that picture, in pixels.
    - `width`: of the cones, in pixels.
    - `paths`: of the cameras, one a picture.
    """

    frame: Int[Array, " rays"]
    place: Float[Array, "rays 2"] = eqx.field(converter=as_float_leaf)
    width: Float[Array, " rays"] = eqx.field(converter=as_float_leaf)
    paths: tuple[str, ...] = eqx.field(static=True)
