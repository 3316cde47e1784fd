"""The scene tree: nodes, paths, selection, description, saving."""

from ._background import (
    AbstractBackground as AbstractBackground,
)
from ._background import (
    Backdrop as Backdrop,
)
from ._background import (
    as_background as as_background,
)
from ._cameras import find_camera as find_camera
from ._describe import describe as describe
from ._group import Group as Group
from ._group import fills_space as fills_space
from ._group import sum_media as sum_media
from ._node import AbstractNode as AbstractNode
from ._paths import (
    freeze as freeze,
)
from ._paths import (
    matches as matches,
)
from ._paths import (
    named_leaves as named_leaves,
)
from ._paths import (
    select as select,
)
from ._paths import (
    thaw as thaw,
)
from ._paths import (
    trainable_leaves as trainable_leaves,
)
from ._save import load as load
from ._save import save as save
from ._scene import Scene as Scene
from ._transformed import Transformed as Transformed
from ._volume import Volume as Volume
from ._weights import (
    count_parameters as count_parameters,
)
from ._weights import (
    mean_square_weight as mean_square_weight,
)
from ._weights import (
    network_weights as network_weights,
)
