"""The scene tree: nodes, paths, selection, description, saving.

Read `_scene`, `_group`, `_transformed`, `_surface` and `_volume` (with `_occupancy` and `_refresh`)
for the records of the tree, and `_node` for what they share; `_background`; `_copies` for many
copies in one node; `_capture` for corrections of pictures; `_contents` for the walk over the tree;
then `_paths`, `_ties`, `_weights`, `_describe` and `_save`, which walk the pytree alone.
"""

from ._background import AbstractBackground as AbstractBackground
from ._capture import Capture as Capture
from ._contents import surface_paths as surface_paths
from ._copies import Instances as Instances
from ._describe import describe as describe
from ._group import Group as Group
from ._occupancy import Occupancy as Occupancy
from ._paths import freeze as freeze, named_leaves as named_leaves, select as select, thaw as thaw
from ._refresh import refresh_occupancy as refresh_occupancy
from ._replace import replace as replace
from ._save import load as load, save as save
from ._scene import Scene as Scene
from ._surface import Surface as Surface
from ._ties import open_scene as open_scene, tie as tie, untie as untie
from ._transformed import Transformed as Transformed
from ._volume import Volume as Volume
from ._weights import count_parameters as count_parameters

# Internal: for other packages of the library, and for none of its users.
from ._background import as_background, Backdrop, Sky
from ._capture import lens_size, move_camera
from ._contents import (
    camera_paths,
    Contents,
    find_camera,
    find_cameras,
    find_capture,
    find_contents,
    find_lamps,
    find_filter,
    Leaf,
)
from ._copies import is_per_copy, PerCopy
from ._leaf_checks import check_leaves, find_violations, is_stacked
from ._node import AbstractNode
from ._paths import (
    check_matches,
    label_leaves,
    matches,
    no_match,
    path_of,
    shortened,
    ties,
    trainable_leaves,
)
from ._refresh import has_occupancy
from ._stack import stack_alike
from ._save import check_format, load_whole, SCENE_FILE, tree_header, versions, written_by
from ._surface import has_pattern
from ._ties import resolve_ties
from ._volume import FieldReach, Pace
from ._weights import mean_square_weight, network_weights

from .._first_use import finish_import


finish_import(__name__)
