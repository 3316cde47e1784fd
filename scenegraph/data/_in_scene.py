import equinox as eqx

from .._typing import Array, Float, Int
from ..numerics import AbstractModule, as_float_leaf


class CamerasInScene(AbstractModule):
    """Cameras that are nodes of the scene that is fitted: they can be fitted too."""

    paths: tuple[str, ...] = eqx.field(static=True)


class Pixels(AbstractModule):
    """Pixels of cameras in the scene; they become rays once the scene is at hand."""

    frame: Int[Array, " rays"]
    place: Float[Array, "rays 2"] = eqx.field(converter=as_float_leaf)
    width: Float[Array, " rays"] = eqx.field(converter=as_float_leaf)
    paths: tuple[str, ...] = eqx.field(static=True)
