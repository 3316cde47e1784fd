"""The volume that holds a field: in a box, or in all of space, contracted about a ball."""

from typing import TypeAlias

import equinox as eqx
import numpy as np

from .._typing import RandomKey
from ..data import Ball
from ..encodings import Contraction
from ..fields import AbstractField
from ..integrators import AbstractMediaIntegrator
from ..scene import Occupancy, Transformed, Volume
from ..shapes import Box
from ..transforms import Similarity
from ._method import AbstractMethod


# Two corners, in world units.
Corners: TypeAlias = tuple[np.ndarray, np.ndarray]
# What a field fills: a box, all of space contracted about a ball, or each ray from near to far.
Space: TypeAlias = Corners | Ball | None


@eqx.filter_jit
def build_field(method: AbstractMethod, key: RandomKey) -> AbstractField:
    """Makes a field in one compiled program, instead of one for each layer."""
    return method.make_field(key=key)


def in_box(
    field: AbstractField,
    box: Corners,
    integrator: AbstractMediaIntegrator,
    occupancy: Occupancy | None = None,
) -> Transformed:
    """Puts a field into a box of the world, whose longest side is mapped to that from -1 to 1."""
    lower, upper = box
    half, centre = (upper - lower) / 2, (upper + lower) / 2
    scale = float(half.max())
    bounds = Box((-half / scale).astype(np.float32), (half / scale).astype(np.float32))
    volume = Volume(field, bounds=bounds, occupancy=occupancy, integrator=integrator)
    return Transformed(volume, Similarity(translation=centre.astype(np.float32), scale=scale))


def in_ball(
    field: AbstractField,
    ball: Ball,
    integrator: AbstractMediaIntegrator,
    occupancy: Occupancy | None,
) -> Transformed:
    """Puts a field of the cube from -1 to 1 into all of space, contracted about a ball."""
    volume = Volume(
        field,
        bounds=None,
        occupancy=occupancy,
        contraction=Contraction(1.0),
        far_background=True,
        integrator=integrator,
    )
    centre = ball.centre.astype(np.float32)
    return Transformed(volume, Similarity(translation=centre, scale=ball.radius))
