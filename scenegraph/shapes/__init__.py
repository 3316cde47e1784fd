"""Shapes: surfaces that answer for a cone with a place and a coverage."""

from ._base import (
    AbstractShape as AbstractShape,
    Crossing as Crossing,
    first_ahead as first_ahead,
    join_pieces as join_pieces,
    smooth_piece as smooth_piece,
    within_reach as within_reach,
)
from ._box import Box as Box
from ._capsule import Capsule as Capsule
from ._cylinder import Cylinder as Cylinder
from ._disk import Disk as Disk
from ._grid import SampledDistance as SampledDistance
from ._plane import Plane as Plane
from ._rectangle import Rectangle as Rectangle
from ._signed_distance import SignedDistance as SignedDistance
from ._sphere import Sphere as Sphere

# Internal: for other packages of the library, and for none of its users.
from ._angles import azimuth, elevation
from ._base import choose, round_crossings
