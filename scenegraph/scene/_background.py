import abc
from typing import Any

import jax.numpy as jnp

from .._typing import Array, Color, Float, Vector
from ..numerics import AbstractModule, safe_normalise
from ..rays import Hit, no_light, pixel_jvp, Ray
from ..shaders import AbstractShader, as_shader
from ..shapes import azimuth, elevation


class AbstractBackground(AbstractModule):
    """The colour of rays that nothing stops."""

    @abc.abstractmethod
    def __call__(self, ray: Ray) -> Color:
        """Returns the colour at the end of a ray.

        **Arguments:**

        - `ray`: one ray, in world coordinates.

        **Returns:**

        The colour.
        """


class Backdrop(AbstractBackground):
    """A shader on a sphere infinitely far away: `uv` is azimuth and elevation, in radians.

    **Arguments:**

    - `shader`: the shader of the sphere.
    """

    shader: AbstractShader

    def __call__(self, ray: Ray) -> Color:
        (outward, uv), (d_outward, duv) = pixel_jvp(_look, ray)
        full = jnp.ones_like(ray.far)
        hit = Hit(ray.far, outward, -outward, uv, duv.T, full, d_point=d_outward.T)
        return self.shader(hit, ray.view, no_light(uv.dtype))


def _look(origin: Vector, direction: Vector) -> tuple[Vector, Float[Array, "2"]]:
    del origin
    outward = safe_normalise(direction)
    return outward, jnp.stack([azimuth(outward), elevation(outward)])


def as_background(value: Any) -> AbstractBackground:
    """Makes a background of a background, a shader, or a colour (three numbers)."""
    if isinstance(value, AbstractBackground):
        return value
    return Backdrop(as_shader(value))
