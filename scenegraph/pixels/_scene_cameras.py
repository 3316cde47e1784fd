import equinox as eqx

from .._typing import Array, Float, Int
from ..numerics import AbstractModule, as_float_leaf


class SceneCameras(AbstractModule):
    """Cameras that are nodes of the scene, so that they can be fitted with it; a path a picture."""

    paths: tuple[str, ...] = eqx.field(static=True)


class ScenePixels(AbstractModule):
    """Pixels of cameras in the scene; they become rays once the scene is at hand."""

    # The number of each pixel's picture, and coordinates (x, y) in it; the widths of the cones are
    # in pixels, too. There is one path a picture.
    frame: Int[Array, " rays"]
    place: Float[Array, "rays 2"] = eqx.field(converter=as_float_leaf)
    width: Float[Array, " rays"] = eqx.field(converter=as_float_leaf)
    paths: tuple[str, ...] = eqx.field(static=True)
