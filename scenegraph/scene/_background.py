import abc
from typing import Any

import jax.numpy as jnp

from .._typing import Color
from ..numerics import AbstractModule, safe_normalise
from ..rays import Hit, Ray
from ..shaders import AbstractShader, Constant


class AbstractBackground(AbstractModule):
    """What a ray sees when nothing stops it."""

    @abc.abstractmethod
    def __call__(self, ray: Ray) -> Color:
        """The colour at the end of a ray.

        **Arguments:**

        - `ray`: one ray, in the world.

        **Returns:**

        The colour.
        """


class Backdrop(AbstractBackground):
    """A shader on a sphere infinitely far away: `uv` is azimuth and elevation, in radians.

    **Arguments:**

    - `shader`: what the sphere looks like.
    """

    shader: AbstractShader

    def __call__(self, ray: Ray) -> Color:
        outward = safe_normalise(ray.direction)
        x, y, z = outward
        level = jnp.where((x == 0) & (y == 0), 1.0, x)
        uv = jnp.stack([jnp.arctan2(y, level), jnp.arcsin(jnp.clip(z, -0.999999, 0.999999))])
        hit = Hit(ray.far, outward, -outward, uv, jnp.zeros((2, 2), uv.dtype), jnp.ones_like(z))
        return self.shader(hit, ray.view, ())


def as_background(value: Any) -> AbstractBackground:
    """A background from what a user writes.

    **Arguments:**

    - `value`: a background, a shader, or a colour (three numbers).

    **Returns:**

    The background.
    """
    if isinstance(value, AbstractBackground):
        return value
    shader = value if isinstance(value, AbstractShader) else Constant(value)
    return Backdrop(shader)
