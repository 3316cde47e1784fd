import abc
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from .._typing import Array, Color, Float, Vector
from ..lights import EnvironmentLight
from ..numerics import AbstractModule, safe_normalise
from ..rays import Hit, no_light, pixel_jvp, Ray
from ..shaders import AbstractShader, as_shader, ImageTexture
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
        for frame in self.light.frames:
            back = frame.inverse()
            turn = lambda x, back=back: back.direction(x)
            ray = eqx.tree_at(
                lambda r: (r.direction, r.d_direction),
                ray,
                (turn(ray.direction), jax.vmap(turn)(ray.d_direction)),
            )
        return Backdrop(_panorama(self.light.texels))(ray)


def _panorama(texels: Float[Array, "height width 3"]) -> ImageTexture:
    """Returns a texture that goes on beyond azimuth -pi and pi."""
    width = texels.shape[1]
    # One more column on each side: 2 pi (w + 2) / w of azimuth.
    around = jnp.concatenate([texels[:, -1:], texels, texels[:, :1]], axis=1)
    full, half = 2 * jnp.pi * (width + 2) / width, jnp.pi / 2
    return ImageTexture(around, [full, jnp.pi], [-full / 2, -half], probes=1)


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
