import abc
from typing import Any

import jax
import jax.numpy as jnp

from .._typing import Array, Color, Float, Vector
from ..lights import EnvironmentLight
from ..numerics import AbstractModule, safe_divide, safe_norm, safe_normalise, safe_sqrt
from ..rays import Hit, no_light, pixel_jvp, Ray
from ..shaders import AbstractShader, as_shader, build_levels, Pyramid
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
    """A shader on a sphere infinitely far away: `uv` is azimuth and elevation, in radians."""

    shader: AbstractShader

    def __call__(self, ray: Ray) -> Color:
        (outward, uv), (d_outward, duv) = pixel_jvp(_look, ray)
        full = jnp.ones_like(ray.far)
        hit = Hit(ray.far, outward, -outward, uv, duv.T, full, d_point=d_outward.T)
        return self.shader(hit, ray.view, no_light(uv.dtype))


class Sky(AbstractBackground):
    """The panorama of an environment light, seen behind everything."""

    light: EnvironmentLight

    def __call__(self, ray: Ray) -> Color:
        # The light's frames turn its panorama to the world: the ray is turned back.
        direction, sides = ray.direction, ray.d_direction
        for frame in self.light.frames:
            back = frame.inverse()
            direction, sides = back.direction(direction), jax.vmap(back.direction)(sides)
        normalise = lambda x: jax.jvp(safe_normalise, (direction,), (x,))
        outward, d_outward = jax.vmap(normalise, out_axes=(None, 0))(sides)
        return _average(self.light.texels, outward, d_outward)


# Places along the part of a circle of latitude that a pixel has more of than at the horizon.
_PROBES = (-0.375, -0.125, 0.125, 0.375)


def _average(
    texels: Float[Array, "height width 3"], outward: Vector, d_outward: Float[Array, "2 3"]
) -> Color:
    """Averages a panorama over a pixel, whose sides are changes of a direction of length one."""
    height, width, _ = texels.shape
    # A pixel as a square: its side is the root of its solid angle. Texels are pi / h high, and at
    # the horizon 2 pi / w wide.
    square = safe_norm(jnp.cross(*d_outward))
    side, across = safe_sqrt(square), safe_norm(outward[:2])
    down = 0.5 - jnp.arctan2(outward[2], across) / jnp.pi
    right = 0.5 + azimuth(outward) / (2 * jnp.pi)
    # Its part of the circle of latitude: s / (2 pi cos(elevation)), of which s / (2 pi) is in the
    # level of detail.
    part = jnp.minimum(safe_divide(side, 2 * jnp.pi * across, 1.0), 1)
    more = safe_sqrt(jnp.maximum(part**2 - square / (4 * jnp.pi**2), 0))
    picture = Pyramid(build_levels(texels), (height, width), (False, True), (False, False))
    covered = square * (height / jnp.pi) * (width / (2 * jnp.pi))
    look = lambda place: picture.trilinear(jnp.stack([down, right + more * place]), covered)
    around = jnp.mean(jax.vmap(look)(jnp.asarray(_PROBES, outward.dtype)), axis=0)
    # About the zenith and the nadir, all of the circle counts: the means of rows.
    rows = build_levels(jnp.mean(texels, axis=1, keepdims=True))
    column = Pyramid(rows, (height, 1), (False, False), (False, False))
    mean = column.trilinear(jnp.stack([down, right]), square * (height / jnp.pi) ** 2)
    return around + jnp.clip(2 * part - 1, 0, 1) * (mean - around)


def _look(origin: Vector, direction: Vector) -> tuple[Vector, Float[Array, "2"]]:
    del origin
    outward = safe_normalise(direction)
    return outward, jnp.stack([azimuth(outward), elevation(outward)])


def as_background(value: Any) -> AbstractBackground:
    """Makes a background of a background, an environment light, a shader, or a colour."""
    if isinstance(value, AbstractBackground):
        return value
    if isinstance(value, EnvironmentLight):
        return Sky(value)
    return Backdrop(as_shader(value))
