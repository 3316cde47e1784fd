"""Optimisers of a scene's leaves: additions to optax, each of which fits any tree of arrays."""

from ._by_path import by_path as by_path, within as within
from ._large_steps import large_steps as large_steps
from ._schedule import (
    AbstractSchedule as AbstractSchedule,
    Linear as Linear,
    LogLinear as LogLinear,
    mip_nerf_optimizer as mip_nerf_optimizer,
)
from ._uniform_adam import scale_by_uniform_adam as scale_by_uniform_adam
from ._welded import welded as welded

# Internal: for other packages of the library, and for none of its users.
from ._schedule import scale_by_schedule, Until
from ._welded import first_at_place

from .._first_use import finish_import


finish_import(__name__)
