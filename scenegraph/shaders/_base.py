import abc
from typing import ClassVar

from .._typing import Color, Vector
from ..numerics import AbstractModule
from ..rays import Hit, Irradiance


class AbstractShader(AbstractModule):
    """What a surface looks like where a ray meets it.

    One that is black without light says so by a class attribute `needs_light = True`, and one that
    is a pattern has a field with its coordinates: surfaces without `uv` then refuse it.
    """

    needs_light: ClassVar[bool] = False

    @abc.abstractmethod
    def __call__(self, hit: Hit, view: Vector, lights: Irradiance) -> Color:
        """The colour that leaves the surface towards the eye.

        **Arguments:**

        - `hit`: where the ray meets the surface; its normal is turned to the eye.
        - `view`: the direction of the ray.
        - `lights`: what shines on the surface there.

        **Returns:**

        The colour.
        """
