import equinox as eqx

from .._typing import Array, Float, Int
from ..numerics import AbstractModule, as_float_leaf


class Sightings(AbstractModule):
    """Points of the scene, and pixels that show them: of every picture that they were found in.

    Nothing lies between a point and a camera whose picture shows it.

    **Arguments:**

    - `pixel`: the pixels, as indices in the flat list of `Views`, `sightings`.
    - `point`: the points that they show, in the world, `sightings 3`.
    """

    pixel: Int[Array, " sightings"]
    point: Float[Array, "sightings 3"] = eqx.field(converter=as_float_leaf)
