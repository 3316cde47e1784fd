"""Shapes: surfaces that compute their intersections with a cone, and the pixel's coverage.

Read `_base` first, and `_bounds`; then the flat ones, `_plane`, `_disk`, `_rectangle` and `_box`;
the round ones, `_sphere`, `_ellipsoid`, `_cylinder` and `_capsule` with `_angles`;
`_signed_distance` with `_distance_function`, `_grid` and `_sphere_trace`; and `_triangle_mesh` with
`_mesh_checks`, `_triangle` (a face in a pixel), `_sheets` (many of them) and `_height_field`.
"""

from ._base import (
    AbstractShape as AbstractShape,
    AbstractSmoothShape as AbstractSmoothShape,
    Crossing as Crossing,
    join_parts as join_parts,
    smooth_part as smooth_part,
    within_reach as within_reach,
)
from ._bounds import AbstractBounded as AbstractBounded
from ._box import Box as Box
from ._capsule import Capsule as Capsule
from ._cylinder import Cylinder as Cylinder
from ._disk import Disk as Disk
from ._ellipsoid import Ellipsoid as Ellipsoid
from ._height_field import HeightField as HeightField
from ._plane import Plane as Plane
from ._rectangle import Rectangle as Rectangle
from ._signed_distance import SignedDistance as SignedDistance
from ._sphere import Sphere as Sphere
from ._triangle_mesh import TriangleMesh as TriangleMesh

# Internal: for other packages of the library, and for none of its users.
from ._angles import azimuth, elevation
from ._bounds import bounding_ball, cone_touches
from ._grid import SampledDistance
from ._height_field import as_mesh, FACETED
from ._mesh_checks import sorted_faces
from ._sheets import (
    add_sheet,
    fragment_hit,
    hit_of_fragment,
    join,
    no_sheets,
    NOISE,
    Piece,
    piece_of,
    sheet_hit,
    sheet_of,
    Sheets,
    touches,
    unhidden,
    visible_shares,
)
from ._triangle import cross_line, cross_triangle, Fragment, may_cover, Triangle

from .._first_use import finish_import


finish_import(__name__)
