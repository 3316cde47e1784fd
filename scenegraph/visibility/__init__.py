"""Visibility: what rays see, found without derivatives.

Read `_walk` for one ray's way through the tree of surfaces, and `_search` for what it keeps of what
it meets. Of meshes: `_bundles` for the cone about a set of rays, `_lists` for the faces that it may
touch, `_order` for which rays belong together, `_beams` for triangles that single rays may touch,
`_face_search` for the search over faces, `_face_pairs` for sums over them and `_sum_faces` for sums
with derivatives; then `_fragments`, `_sheet_coverage` and `_face_shadows`, which integrators call,
and `_nearest` for rays that do not go together.
"""

from ._bundles import bound_rays as bound_rays, Bundle as Bundle, may_touch as may_touch

# Internal: for other packages of the library, and for none of its users.
from ._bundles import BUNDLE
from ._face_shadows import (
    by_side,
    face_transmission,
    FaceSums,
    sum_moving_shadows,
    sum_shadows,
)
from ._fragments import find_mesh_sheets, FoundFragments, FoundMeshes
from ._lists import (
    AbstractCandidates,
    CandidateLists,
    Everything,
    list_along_rays,
    list_candidates,
)
from ._nearest import find_nearest, Nearest
from ._order import invert_order, order_by_place, order_rays, order_shadow_rays
from ._search import (
    count_parts,
    count_touched,
    find_layers,
    find_layers_of_ray,
    find_occluders,
    INVISIBLE,
    needed_layers,
    Ranking,
    transmission,
    transmission_of_ray,
)
from ._sheet_coverage import sum_sheets

from .._first_use import finish_import


finish_import(__name__)
