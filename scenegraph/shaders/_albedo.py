import abc

import jax.numpy as jnp

from .._typing import Color, Vector
from ..rays import Hit, Irradiance
from ._base import AbstractShader


class AbstractAlbedoShader(AbstractShader):
    """A shader that says which albedo it has, where it is not the colour in even white light.

    The albedo of any other shader is its colour in ambient light of radiance one, without lamps:
    the colour itself of one that ignores lights, and what one that only scatters light is
    multiplied by.

    Example: paint under a coat that also reflects.

    ```python
    class Coated(sg.shaders.AbstractAlbedoShader):
        color: jax.Array = eqx.field(converter=jnp.asarray)
        needs_light: ClassVar[bool] = True

        def __call__(self, hit, view, lights):
            return self.color * (sg.shaders.incident(hit, lights) / jnp.pi) + 0.1 * lights.ambient

        def albedo_at(self, hit, view):
            return self.color


    table = sg.Surface(sg.Plane(), Coated([0.1, 0.5, 0.1]))
    ```
    """

    @abc.abstractmethod
    def albedo_at(self, hit: Hit, view: Vector) -> Color:
        """Computes the base colour of the surface, without any light.

        **Arguments:**

        - `hit`: the intersection of a ray with the surface; its normal is turned to the eye.
        - `view`: the direction of the ray.

        **Returns:**

        Red, green and blue, in the colour space of the shader's inputs.
        """


def albedo_of(shader: AbstractShader, hit: Hit, view: Vector) -> Color:
    """Returns the albedo of any shader at a hit."""
    if isinstance(shader, AbstractAlbedoShader):
        return shader.albedo_at(hit, view)
    none = jnp.zeros((0, 3), view.dtype)
    return shader(hit, view, Irradiance(none, none, jnp.ones(3, view.dtype)))
