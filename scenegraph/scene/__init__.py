"""The scene tree: nodes, paths, selection, description, saving."""

from ._background import (
    AbstractBackground as AbstractBackground,
    as_background as as_background,
    Backdrop as Backdrop,
)
from ._cameras import camera_paths as camera_paths, find_camera as find_camera
from ._describe import describe as describe
from ._detailed import Detailed as Detailed
from ._group import fills_space as fills_space, Group as Group, sum_media as sum_media
from ._linear import (
    color_space as color_space,
    linearise as linearise,
    Linearised as Linearised,
)
from ._node import AbstractNode as AbstractNode
from ._occupancy import Occupancy as Occupancy
from ._paths import (
    freeze as freeze,
    label_leaves as label_leaves,
    matches as matches,
    named_leaves as named_leaves,
    no_match as no_match,
    select as select,
    thaw as thaw,
    trainable_leaves as trainable_leaves,
)
from ._refresh import has_occupancy as has_occupancy, refresh_occupancy as refresh_occupancy
from ._save import (
    check_format as check_format,
    load as load,
    save as save,
    SCENE_FILE as SCENE_FILE,
    tree_header as tree_header,
    versions as versions,
    written_by as written_by,
)
from ._scene import Scene as Scene
from ._stage import (
    Caster as Caster,
    has_surfaces as has_surfaces,
    is_lit as is_lit,
    Placed as Placed,
    set_stage as set_stage,
    Stage as Stage,
)
from ._surface import Surface as Surface
from ._transformed import Transformed as Transformed
from ._volume import Volume as Volume
from ._weights import (
    count_parameters as count_parameters,
    mean_square_weight as mean_square_weight,
    network_weights as network_weights,
)
