"""Where to look along a ray."""

from ._importance import (
    jittered_strata as jittered_strata,
)
from ._importance import (
    resample as resample,
)
from ._importance import (
    resampling_weights as resampling_weights,
)
from ._importance import (
    strata as strata,
)
from ._spacing import (
    AbstractSpacing as AbstractSpacing,
)
from ._spacing import (
    Disparity as Disparity,
)
from ._spacing import (
    Uniform as Uniform,
)
from ._spacing import (
    sample_edges as sample_edges,
)
from ._spacing import (
    stratify as stratify,
)
