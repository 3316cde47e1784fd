"""The scene tree: nodes, paths, selection, description, saving."""

from ._background import AbstractBackground as AbstractBackground, Backdrop as Backdrop
from ._cameras import camera_paths as camera_paths, find_camera as find_camera
from ._describe import describe as describe
from ._group import Group as Group
from ._node import AbstractNode as AbstractNode
from ._occupancy import Occupancy as Occupancy
from ._paths import freeze as freeze, named_leaves as named_leaves, select as select, thaw as thaw
from ._refresh import refresh_occupancy as refresh_occupancy
from ._save import load as load, save as save
from ._scene import Scene as Scene
from ._surface import Surface as Surface
from ._transformed import Transformed as Transformed
from ._volume import Volume as Volume
from ._weights import count_parameters as count_parameters

# Internal: for other packages of the library, and for none of its users.
from ._background import as_background
from ._detailed import Detailed
from ._group import fills_space, sum_media
from ._linear import color_space, linearise, Linearised
from ._paths import label_leaves, matches, no_match, trainable_leaves
from ._refresh import has_occupancy
from ._save import check_format, SCENE_FILE, tree_header, versions, written_by
from ._stage import Caster, has_surfaces, is_lit, Placed, set_stage, Stage
from ._weights import mean_square_weight, network_weights
