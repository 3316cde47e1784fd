import abc
from typing import Any

from .._typing import Color, Vector
from ..numerics import AbstractModule
from ..rays import Hit


class AbstractShader(AbstractModule):
    """What a surface looks like where a ray meets it."""

    @abc.abstractmethod
    def __call__(self, hit: Hit, view: Vector, lights: Any) -> Color:
        """The colour that leaves the surface towards the eye.

        **Arguments:**

        - `hit`: where the ray meets the surface.
        - `view`: the direction of the ray.
        - `lights`: what shines on the surface there.

        **Returns:**

        The colour.
        """
