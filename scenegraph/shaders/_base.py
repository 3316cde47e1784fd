import abc
from typing import Any, ClassVar

import jax

from .._typing import Color, Vector
from ..numerics import AbstractModule
from ..rays import Hit, Irradiance


class AbstractShader(AbstractModule):
    """The colour of a surface at a hit.

    A shader that is black without light sets the class attribute `needs_light` to true, and one
    that asks for `hit.own_view`, `needs_own_view`. One that ignores what comes from behind the
    surface, where `n . l < 0`, sets `needs_light_behind` to false: no shadows are searched for
    there, and what `lights` say of such a direction has none. A pattern has a field of type
    `AbstractCoordinates`; surfaces without `uv` then refuse `OnSurface()`.
    Averages over the pixel use the footprint: `hit.duv`, `hit.d_point` or `hit.d_place`.

    Example: a ramp along `u` between two colours, lit like `Lambert`.

    ```python
    class Ramp(sg.shaders.AbstractShader):
        left: jax.Array = eqx.field(converter=jnp.asarray)
        right: jax.Array = eqx.field(converter=jnp.asarray)
        needs_light: ClassVar[bool] = True
        needs_light_behind: ClassVar[bool] = False

        def __call__(self, hit, view, lights):
            albedo = self.left + hit.uv[0] * (self.right - self.left)
            return albedo * (sg.shaders.incident(hit, lights) / jnp.pi + lights.ambient)


    floor = sg.Surface(sg.Plane(), Ramp([0.9, 0.1, 0.1], [0.1, 0.1, 0.9]))
    ```
    """

    needs_light: ClassVar[bool] = False
    needs_light_behind: ClassVar[bool] = True
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


def asks_for_own_view(node: Any) -> bool:
    """Returns true if a shader, or one in it, needs `hit.own_view`."""
    return any(shader.needs_own_view for shader in _shaders_of(node))


def asks_for_light_behind(node: Any) -> bool:
    """Returns true if a shader, or one in it, needs light from behind the surface."""
    return any(shader.needs_light_behind for shader in _shaders_of(node))


def _shaders_of(node: Any) -> list[AbstractShader]:
    """Returns the shaders of a tree, those in others, too."""
    found = []

    def note(x: Any) -> bool:
        if isinstance(x, AbstractShader):
            found.append(x)
        return False

    jax.tree.leaves(node, is_leaf=note)
    return found
