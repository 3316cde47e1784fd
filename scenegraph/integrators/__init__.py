"""Integrators compute radiance along rays from samplers, the flat scene and compositing.

Read `_base` and `_integrator` first: media and surfaces are integrated apart, and composited.
Media: `_media` at samples, in `_sample_blocks`, for `_hierarchical`, `_guided` and
`_occupancy_march` with `_march` and `_packed`; `_per_volume`, where volumes have integrators of
their own. Surfaces: `_surfaces` for few things; of many, `_along_ray` for a picture, whose rays are
one function from the search to the colours, and `_listed`, layer by layer, for derivatives, with
`_by_kind`, `_mesh_layers`, `_masks` and `_shadows`; `_irradiance`, their light; `_details`, what
pictures show beside colours; and `_nearest_hits`.
`_path` follows random paths: `_path_of_ray` in one kernel, `_path_events` at one surface, with
`_emitters` and `_random`, and `_path_replay` for derivatives.
"""

from ._base import AbstractIntegrator as AbstractIntegrator
from ._guided import Guided as Guided
from ._hierarchical import Hierarchical as Hierarchical
from ._integrator import Integrator as Integrator
from ._occupancy_march import OccupancyMarch as OccupancyMarch
from ._path import Path as Path
from ._surfaces import Surfaces as Surfaces

# Internal: for other packages of the library, and for none of its users.
from ._base import AbstractMediaIntegrator
from ._find_and_shade import goes_ray_by_ray
from ._integrator import (
    choose_integrator,
    count_levels,
    count_requested,
    count_steps,
    fixed_key,
    follows_light,
    is_of_surfaces,
    is_packed,
    march_of,
    skips_empty_space,
    uses_lists,
    with_known_steps,
    with_more_surfaces,
)
from ._irradiance import irradiance_at, visibility
from ._nearest_hits import nearest_hits

from .._first_use import finish_import


finish_import(__name__)
