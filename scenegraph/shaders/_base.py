import abc
from typing import ClassVar

from .._typing import Color, Vector
from ..numerics import AbstractModule
from ..rays import Hit, Irradiance


class AbstractShader(AbstractModule):
    """The colour of a surface at a hit.

    A shader that is black without light sets the class attribute `needs_light` to true, and one
    that asks for `hit.own_view`, `needs_own_view`. A pattern has a field of type
    `AbstractCoordinates`; surfaces without `uv` then refuse `OnSurface()`.
    Averages over the pixel use the footprint: `hit.duv`, `hit.d_point` or `hit.d_place`.

    Example: a ramp along `u` between two colours, lit like `Lambert`.

    ```python
    class Ramp(sg.shaders.AbstractShader):
        left: jax.Array = eqx.field(converter=jnp.asarray)
        right: jax.Array = eqx.field(converter=jnp.asarray)
        needs_light: ClassVar[bool] = True

        def __call__(self, hit, view, lights):
            albedo = self.left + hit.uv[0] * (self.right - self.left)
            return albedo * (sg.shaders.incident(hit, lights) / jnp.pi + lights.ambient)


    floor = sg.Surface(sg.Plane(), Ramp([0.9, 0.1, 0.1], [0.1, 0.1, 0.9]))
    ```
    """

    needs_light: ClassVar[bool] = False
    needs_own_view: ClassVar[bool] = False

    @abc.abstractmethod
    def __call__(self, hit: Hit, view: Vector, lights: Irradiance) -> Color:
        """Computes the colour that leaves the surface towards the eye.

        **Arguments:**

        - `hit`: the intersection of a ray with the surface; its normal is turned to the eye.
        - `view`: the direction of the ray.
        - `lights`: the light that arrives there, shadows included.

        **Returns:**

        Red, green and blue: radiance in a lit scene.
        """
