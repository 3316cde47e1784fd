"""Integrators string samplers, scene and compositing together."""

from ._base import (
    AbstractIntegrator as AbstractIntegrator,
    AbstractMediaIntegrator as AbstractMediaIntegrator,
)
from ._budget import budget_of as budget_of, with_room as with_room
from ._default import (
    choose_integrator as choose_integrator,
    complete as complete,
    Nothing as Nothing,
)
from ._held import Held as Held, hold as hold
from ._hierarchical import Hierarchical as Hierarchical
from ._joint import Joint as Joint
from ._occupancy_march import OccupancyMarch as OccupancyMarch
from ._surfaces import Surfaces as Surfaces
