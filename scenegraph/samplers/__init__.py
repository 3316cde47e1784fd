"""Where to look along a ray."""

from ._importance import (
    jittered_strata as jittered_strata,
    resample as resample,
    resampling_weights as resampling_weights,
    strata as strata,
)
from ._spacing import (
    AbstractSpacing as AbstractSpacing,
    Disparity as Disparity,
    sample_edges as sample_edges,
    stratify as stratify,
    Uniform as Uniform,
)
