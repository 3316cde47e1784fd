"""Integrators string samplers, scene and compositing together."""

from ._base import (
    AbstractIntegrator as AbstractIntegrator,
    AbstractMediaIntegrator as AbstractMediaIntegrator,
)
from ._default import choose_integrator as choose_integrator
from ._hierarchical import Hierarchical as Hierarchical
from ._joint import Joint as Joint
from ._occupancy_march import OccupancyMarch as OccupancyMarch
from ._surfaces import Surfaces as Surfaces

# Internal: for other packages of the library, and for none of its users.
from ._budget import budget_of, with_room
from ._default import complete, Nothing
from ._held import Held, hold
