"""Maths that is safe to differentiate, step functions, compaction, and what a leaf is."""

from ._compact import Compaction as Compaction
from ._compact import compact as compact
from ._frozen import Frozen as Frozen
from ._frozen import is_frozen as is_frozen
from ._frozen import unfreeze as unfreeze
from ._leaves import as_float_leaf as as_float_leaf
from ._module import AbstractModule as AbstractModule
from ._safe import (
    safe_divide as safe_divide,
)
from ._safe import (
    safe_norm as safe_norm,
)
from ._safe import (
    safe_normalise as safe_normalise,
)
from ._safe import (
    safe_sqrt as safe_sqrt,
)
from ._steps import (
    cumulative as cumulative,
)
from ._steps import (
    inverse_cdf as inverse_cdf,
)
from ._steps import (
    max_blur as max_blur,
)
from ._steps import (
    midpoints as midpoints,
)
from ._trigonometry import (
    expected_sin as expected_sin,
)
from ._trigonometry import (
    safe_cos as safe_cos,
)
from ._trigonometry import (
    safe_sin as safe_sin,
)
