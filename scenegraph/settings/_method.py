"""A method: the field that is fitted, the volume that holds it, and how rays are sampled."""

import abc
from typing import TypeAlias

import numpy as np

from .._typing import RandomKey
from ..data import Ball, Views
from ..encodings import Contraction
from ..fields import AbstractField
from ..integrators import AbstractMediaIntegrator
from ..programs import FOR_SOME_RUNS, quick_jit
from ..scene import Occupancy, Transformed, Volume
from ..shapes import Box
from ..transforms import Similarity


# Fits of at least so many seconds can afford larger tables and batches.
LONG = 1200.0
# Two corners, in world units.
Corners: TypeAlias = tuple[np.ndarray, np.ndarray]
# What a field fills: a box, all of space contracted about a ball, or each ray from near to far.
Space: TypeAlias = Corners | Ball | None


class AbstractMethod(abc.ABC):
    """The settings of a method of fitting a radiance field; it builds the method's parts.

    A method is a frozen dataclass whose fields are its settings.
    """

    @property
    @abc.abstractmethod
    def contracts(self) -> bool:
        """True for a method that can fit all of space, contracted."""

    @property
    @abc.abstractmethod
    def appearance_size(self) -> int:
        """The size of the appearance codes of training pictures; 0 for a method without any."""

    @abc.abstractmethod
    def make_field(self, *, key: RandomKey) -> AbstractField:
        """Makes the radiance field.

        **Arguments:**

        - `key`: the random key of the weights. Keyword only argument.

        **Returns:**

        The field; in a box, it fills the cube from -1 to 1.
        """

    @abc.abstractmethod
    def make_volume(
        self, box: Space, empty: np.ndarray | None, *, key: RandomKey
    ) -> Volume | Transformed:
        """Makes the node of the scene that holds the field, with the integrator in its volume.

        **Arguments:**

        - `box`: the corners of the box that holds the scene, in world units; a ball, to contract
          all of space about it; `None` for all of each ray's interval from near to far.
        - `empty`: the cells from `find_empty`, or `None`.
        - `key`: the random key of the weights. Keyword only argument.

        **Returns:**

        The volume; in a box, moved there from the cube from -1 to 1.

        **Errors:**

        `ValueError` for a method that needs a box and gets none.
        """

    @abc.abstractmethod
    def make_integrator(self, box: Space) -> AbstractMediaIntegrator:
        """Makes the integrator of the volume.

        **Arguments:**

        - `box`: the corners of the box that holds the scene, in world units, or a ball, or `None`.

        **Returns:**

        The integrator; lengths in it are in the volume's own frame, in which the longest side of a
        box is 2.
        """

    @abc.abstractmethod
    def adapt(self, views: Views, box: Space) -> "AbstractMethod":
        """Chooses the settings that are left to the pictures.

        **Arguments:**

        - `views`: the pictures.
        - `box`: the corners of the box that holds the scene, in world units, or a ball, or `None`.

        **Returns:**

        The method with all its settings; the same one if it has them already.
        """

    @abc.abstractmethod
    def choose_by_time(self, limit: float | None) -> "AbstractMethod":
        """Chooses the settings that are left to the time.

        **Arguments:**

        - `limit`: the time of the whole fit, in seconds; `None` if it has no limit.

        **Returns:**

        The method; the same one if it has these settings already.
        """

    @abc.abstractmethod
    def find_empty(self, views: Views, box: Space, *, spare: float = 0.0) -> np.ndarray | None:
        """Finds the cells of the box that the pictures show to be empty.

        **Arguments:**

        - `views`: the pictures.
        - `box`: the corners of the box that holds the scene, in world units, or a ball, or `None`.
        - `spare`: the distance by which pictures may be off, as a share of their width.
          Keyword only argument.

        **Returns:**

        A boolean for each cell, a cube of them; `None` for a method that skips no empty space.
        """


@quick_jit(FOR_SOME_RUNS)
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
