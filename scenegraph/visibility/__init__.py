"""Visibility: what rays see, found without derivatives.

Read `_walk` for one ray's way through a tree of boxes, `_search` for what it keeps of the surfaces
that it meets, `_faces` for faces of meshes, whose fragments it joins to sheets, and `_layers` for
both together. Of meshes, too:
`_face_shadows`, sums over all faces that a shadow ray meets. `_sum_pairs` has sums over all leaves
that a ray meets with derivatives, of which `_sheet_coverage` are some. Then `_nearest` for lines,
`_lines` for those of paths, and `_order` for rays that come in any order.
"""

# Internal: for other packages of the library, and for none of its users.
from ._face_shadows import (
    by_side,
    face_transmission,
    FaceSums,
    sum_shadows,
    sums_of_ray,
)
from ._faces import faces_of_sheet, fill_faces, FoundSheet, ListedSheet, next_faces
from ._layers import find_layers, FoundLayers, list_faces
from ._lines import nearest_on_line, OnLine, passing_of_line
from ._nearest import find_nearest, Nearest
from ._order import BUNDLE, invert_order, order_rays
from ._search import (
    count_parts,
    count_touched,
    find_passing,
    INVISIBLE,
    map_ranked,
    next_surfaces,
    passing_of_ray,
    thin_hits,
)
from ._sheet_coverage import sum_sheets
from ._sum_pairs import sum_over_pairs
from ._walk import row_of

from .._first_use import finish_import


finish_import(__name__)
