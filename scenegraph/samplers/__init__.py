"""Positions of samples along a ray: regular or jittered spacings, and importance resampling."""

from ._importance import resample as resample
from ._spacing import AbstractSpacing as AbstractSpacing, Disparity as Disparity, Uniform as Uniform

# Internal: for other packages of the library, and for none of its users.
from ._importance import jittered_strata, resampling_weights, strata
from ._spacing import sample_edges, stratify

from .._first_use import finish_import


finish_import(__name__)
