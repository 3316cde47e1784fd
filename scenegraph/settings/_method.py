"""A method: the field that is fitted, the volume that holds it, and how rays are sampled."""

import abc
from typing import TYPE_CHECKING

import numpy as np


if TYPE_CHECKING:
    from .._typing import RandomKey
    from ..data import Views
    from ..fields import AbstractField
    from ..integrators import AbstractMediaIntegrator
    from ..scene import Transformed, Volume
    from ._volumes import Space

# Fits of at least so many seconds can afford larger tables and batches.
LONG = 1200.0


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
    def make_field(self, *, key: "RandomKey") -> "AbstractField":
        """Makes the radiance field.

        **Arguments:**

        - `key`: the random key of the weights. Keyword only argument.

        **Returns:**

        The field; in a box, it fills the cube from -1 to 1.
        """

    @abc.abstractmethod
    def make_volume(
        self, box: "Space", empty: np.ndarray | None, *, key: "RandomKey"
    ) -> "Volume | Transformed":
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
    def make_integrator(self, box: "Space") -> "AbstractMediaIntegrator":
        """Makes the integrator of the volume.

        **Arguments:**

        - `box`: the corners of the box that holds the scene, in world units, or a ball, or `None`.

        **Returns:**

        The integrator; lengths in it are in the volume's own frame, in which the longest side of a
        box is 2.
        """

    @abc.abstractmethod
    def adapt(self, views: "Views", box: "Space") -> "AbstractMethod":
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
    def find_empty(self, views: "Views", box: "Space", *, spare: float = 0.0) -> np.ndarray | None:
        """Finds the cells of the box that the pictures show to be empty.

        **Arguments:**

        - `views`: the pictures.
        - `box`: the corners of the box that holds the scene, in world units, or a ball, or `None`.
        - `spare`: the distance by which pictures may be off, as a share of their width.
          Keyword only argument.

        **Returns:**

        A boolean for each cell, a cube of them; `None` for a method that skips no empty space.
        """
