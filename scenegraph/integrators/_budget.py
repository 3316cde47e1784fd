"""How much room the samples of many rays have together, and how it is changed."""

import dataclasses

from ._base import AbstractIntegrator
from ._joint import Joint
from ._occupancy_march import OccupancyMarch


# Few, because every one is compiled anew.
_BUCKETS = (4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256)


def budget_of(integrator: AbstractIntegrator) -> int | None:
    """For how many samples a ray there is room, where rays share it.

    **Arguments:**

    - `integrator`: any.

    **Returns:**

    A mean over rays; `None` where every ray has its own samples.
    """
    if isinstance(integrator, Joint):
        return budget_of(integrator.media)
    return integrator.budget if isinstance(integrator, OccupancyMarch) else None


def with_room(integrator: AbstractIntegrator, samples: float) -> AbstractIntegrator:
    """An integrator with the least budget that serves.

    **Arguments:**

    - `integrator`: any.
    - `samples`: how many each ray needs, on average.

    **Returns:**

    The integrator with the next larger of a few budgets, at most as many as a ray has candidates;
    unchanged where every ray has its own samples.
    """
    if isinstance(integrator, Joint):
        media = with_room(integrator.media, samples)
        return dataclasses.replace(integrator, media=media)
    if not isinstance(integrator, OccupancyMarch):
        return integrator
    most = integrator.candidates
    return integrator.with_budget(next((x for x in _BUCKETS if samples <= x < most), most))
