import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .._typing import Array, Float, Vector
from ..numerics import as_float_leaf, require_not_negative, safe_normalise
from ..rays import Ray
from ..transforms import AbstractTransform
from ._base import AbstractLight, LightSample, rays_along


class EnvironmentLight(AbstractLight):
    """Light from a panorama around the scene, gathered into a number of directions.

    Every texel sends its light from the nearest of these directions, so none is lost, whatever
    their number. Each casts a shadow as soft as the part of the sky that it stands for.

    **Arguments:**

    - `texels`: radiance; rows from straight up to straight down, columns from azimuth -pi to pi
      (`Backdrop` shows the same panorama with a texture of size `(2 pi, pi)` and corner
      `(-pi, -pi / 2)`).
    - `samples`: number of directions; static.
    - `frames`: transforms that rotate the panorama, the outermost first.
    """

    texels: Float[Array, "height width 3"] = eqx.field(converter=as_float_leaf)
    samples: int = eqx.field(static=True, default=64)
    frames: tuple[AbstractTransform, ...] = ()

    def __check_init__(self):
        require_not_negative(self, "texels")
        if self.samples < 1:
            raise ValueError(f"`EnvironmentLight.samples` must be at least 1; got {self.samples}.")

    def sample(self, point: Vector, d_point: Float[Array, "2 3"]) -> LightSample:
        height, width, _ = self.texels.shape
        directions, owners, angles = _cells(height, width, self.samples)
        # Irradiance of a direction: the sum of radiance times solid angle over its texels.
        powers = angles[:, None] * self.texels.reshape(-1, 3)
        irradiance = jax.ops.segment_sum(powers, owners, self.samples)
        # A square of the mean solid angle 4 pi / n.
        spread = float(np.sqrt(4 * np.pi / self.samples))

        def ray(direction: Vector) -> Ray:
            for frame in reversed(self.frames):
                direction = frame.direction(direction)
            return rays_along(safe_normalise(direction), point, d_point, 1e4, spread)

        rays = jax.vmap(ray)(jnp.asarray(directions, point.dtype))
        rays = jax.tree.map(lambda x: x[:, 0], rays)
        return LightSample(rays, irradiance, jnp.zeros(3, irradiance.dtype))

    def moved(self, transform: AbstractTransform) -> AbstractLight:
        frames = transform, *self.frames
        is_leaf = lambda x: isinstance(x, tuple)
        return eqx.tree_at(lambda x: x.frames, self, frames, is_leaf=is_leaf)


@functools.lru_cache(maxsize=8)
def _cells(height: int, width: int, samples: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Returns even directions, the nearest one of each texel, and the texels' solid angles."""
    # A Fibonacci lattice: heights in equal steps, each turned by the golden angle.
    up = 1 - 2 * (np.arange(samples) + 0.5) / samples
    around = np.pi * (1 + 5**0.5) * np.arange(samples)
    directions = _on_sphere(around, np.arcsin(up))
    # The solid angle of a texel: (sin(upper edge) - sin(lower edge)) * 2 pi / width.
    edges = np.pi / 2 - np.pi * np.arange(height + 1) / height
    bands = (np.sin(edges[:-1]) - np.sin(edges[1:])) * 2 * np.pi / width
    elevations = (edges[:-1] + edges[1:]) / 2
    azimuths = -np.pi + 2 * np.pi * (np.arange(width) + 0.5) / width
    texels = _on_sphere(*np.meshgrid(azimuths, elevations))
    owners = np.argmax(texels.reshape(-1, 3) @ directions.T, axis=1)
    return directions, owners, np.repeat(bands, width)


def _on_sphere(azimuth: np.ndarray, elevation: np.ndarray) -> np.ndarray:
    level = np.cos(elevation)
    return np.stack([level * np.cos(azimuth), level * np.sin(azimuth), np.sin(elevation)], axis=-1)
