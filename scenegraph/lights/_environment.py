import functools
import math
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .._typing import Array, Color, Float, Scalar, Vector
from ..images import as_light
from ..numerics import as_float_leaf, between_levels, require_not_negative, safe_normalise
from ..rays import Ray
from ..transforms import AbstractTransform
from ._base import AbstractEnvironment, AbstractLight, LightSample, rays_along
from ._prefilter import dominant_directions, level_shapes, look_up, prefilter


class EnvironmentLight(AbstractEnvironment):
    """Light from a panorama around the scene, gathered into a number of directions.

    Every part of a texel sends its light from the nearest of these directions, so none is lost,
    whatever their number. Each casts a shadow as soft as the part of the sky that it stands for.

    `GGX` and `Phong` mirror the panorama itself, averaged over lobes of nine roughnesses from 0 to
    1 whose shape is that of light seen head on. The shadow of what they mirror is a mean of those
    of the directions nearby. Mirrors show at most 256 rows of texels.

    **Arguments:**

    - `texels`: radiance; rows from straight up to straight down, columns from azimuth -pi to pi. An
      `Image` gives its linear light. A scene whose `background` is the light shows it.
    - `samples`: number of directions; static.
    - `frames`: transforms that rotate the panorama, the outermost first.

    **Source:** Karis 2013, "Real Shading in Unreal Engine 4" (the averages); Lagarde and de
    Rousiers 2014, "Moving Frostbite to Physically Based Rendering" (the direction to look them up).
    """

    texels: Float[Array, "height width 3"] = eqx.field(converter=as_light)
    samples: int = eqx.field(static=True, default=64)
    frames: tuple[AbstractTransform, ...] = ()

    def __check_init__(self):
        require_not_negative(self, "texels")
        if self.samples < 1:
            raise ValueError(f"`EnvironmentLight.samples` must be at least 1; got {self.samples}.")

    def prepare(self) -> "PreparedEnvironment":
        height, width, _ = self.texels.shape
        shape = height, width
        averaged = prefilter(self.texels)
        return PreparedEnvironment(self._gather(), averaged, shape, self.frames, self.texels)

    def _gather(self) -> Float[Array, "samples 3"]:
        """Returns the irradiance of every direction."""
        height, width, _ = self.texels.shape
        owners, texels, angles = _cells(height, width, self.samples)
        # Irradiance of a direction: the sum of radiance times solid angle over parts of texels.
        powers = (
            jnp.asarray(angles[:, None], self.texels.dtype) * self.texels.reshape(-1, 3)[texels]
        )
        return jax.ops.segment_sum(powers, owners, self.samples)

    def sample(self, point: Vector, d_point: Float[Array, "2 3"]) -> LightSample:
        return _sample(self._gather(), self.frames, point, d_point)

    def reflect(self, normal: Vector, view: Vector) -> Float[Array, "levels 3"]:
        return self.prepare().reflect(normal, view)

    def mirror(self, direction: Vector, roughness: Scalar) -> Color:
        return self.prepare().mirror(direction, roughness)

    def moved(self, transform: AbstractTransform) -> AbstractLight:
        return _moved(self, transform)


class PreparedEnvironment(AbstractEnvironment):
    """A panorama, gathered into directions and averaged over lobes."""

    # The directions' irradiance; texels of the averaged panoramas, one level after the other; the
    # size of the panorama that they were made of; transforms that rotate it, the outermost first;
    # the panorama itself.
    irradiance: Float[Array, "samples 3"] = eqx.field(converter=as_float_leaf)
    levels: Float[Array, "all 3"] = eqx.field(converter=as_float_leaf)
    shape: tuple[int, int] = eqx.field(static=True)
    frames: tuple[AbstractTransform, ...] = ()
    texels: Float[Array, "height width 3"] | None = None

    def prepare(self) -> "PreparedEnvironment":
        return self

    def sample(self, point: Vector, d_point: Float[Array, "2 3"]) -> LightSample:
        return _sample(self.irradiance, self.frames, point, d_point)

    def reflect(self, normal: Vector, view: Vector) -> Float[Array, "levels 3"]:
        directions = dominant_directions(normal, -safe_normalise(view))
        return look_up(self.levels, level_shapes(*self.shape), jax.vmap(self._unturned)(directions))

    def mirror(self, direction: Vector, roughness: Scalar) -> Color:
        shapes = level_shapes(*self.shape)
        again = jnp.broadcast_to(self._unturned(direction), (len(shapes), 3))
        return between_levels(look_up(self.levels, shapes, again), roughness)

    def _unturned(self, direction: Vector) -> Vector:
        """Returns a direction of the world in the panorama's frame."""
        # The panorama is turned by F_1 F_2 ... F_n: undone from the outermost on.
        for frame in self.frames:
            direction = frame.inverse().direction(direction)
        return direction

    def moved(self, transform: AbstractTransform) -> AbstractLight:
        return _moved(self, transform)


def _sample(
    irradiance: Float[Array, "samples 3"],
    frames: tuple[AbstractTransform, ...],
    point: Vector,
    d_point: Float[Array, "2 3"],
) -> LightSample:
    """Returns the rays to the directions of a panorama, and their light."""
    count = irradiance.shape[0]
    # A square of the mean solid angle 4 pi / n.
    spread = float(np.sqrt(4 * np.pi / count))

    def ray(direction: Vector) -> Ray:
        # F_1 F_2 ... F_n d: the innermost first
        for frame in reversed(frames):
            direction = frame.direction(direction)
        return rays_along(safe_normalise(direction), point, d_point, math.inf, spread)

    rays = jax.vmap(ray)(jnp.asarray(_lattice(count), point.dtype))
    rays = jax.tree.map(lambda x: x[:, 0], rays)
    return LightSample(rays, irradiance, jnp.zeros(3, irradiance.dtype))


def _moved(light: Any, transform: AbstractTransform) -> Any:
    """Turns a light that has frames."""
    frames = transform, *light.frames
    is_leaf = lambda x: isinstance(x, tuple)
    return eqx.tree_at(lambda x: x.frames, light, frames, is_leaf=is_leaf)


# Parts of texels, by the number of directions, and the most of them: where texels are few, each
# sends its light from several directions.
_PARTS, _MOST_PARTS = 128, 2**15


class _Cells(NamedTuple):
    """Equal parts of texels: which direction is nearest, which texel it is, the solid angle."""

    owners: np.ndarray
    texels: np.ndarray
    angles: np.ndarray


@functools.lru_cache(maxsize=8)
def _cells(height: int, width: int, samples: int) -> _Cells:
    """Divides texels among directions."""
    # Rows by columns of parts are about square at the horizon.
    wanted = min(_PARTS * samples, _MOST_PARTS)
    rows = height * math.ceil(math.sqrt(wanted / 2) / height)
    columns = width * math.ceil(math.sqrt(wanted * 2) / width)
    if height * width >= wanted:
        rows, columns = height, width
    texel = np.arange(height)[:, None] * width + np.arange(width)
    texel = np.repeat(np.repeat(texel, rows // height, 0), columns // width, 1).reshape(-1)
    owners, angles = _nearest_of(rows, columns, samples)
    # JAX remembers what it made of an array, and 64 bits are 32 only where it is told so.
    return _Cells(owners.astype(np.int32), texel.astype(np.int32), angles)


def _nearest_of(height: int, width: int, samples: int) -> tuple[np.ndarray, np.ndarray]:
    """Returns the direction that is nearest to each part, and the parts' solid angles."""
    # The solid angle of a texel: (sin(upper edge) - sin(lower edge)) * 2 pi / width.
    edges = np.pi / 2 - np.pi * np.arange(height + 1) / height
    bands = (np.sin(edges[:-1]) - np.sin(edges[1:])) * 2 * np.pi / width
    elevations = (edges[:-1] + edges[1:]) / 2
    azimuths = -np.pi + 2 * np.pi * (np.arange(width) + 0.5) / width
    texels = _on_sphere(*np.meshgrid(azimuths, elevations))
    # Of unit vectors, the nearest is that with the largest cosine.
    owners = np.argmax(texels.reshape(-1, 3) @ _lattice(samples).T, axis=1)
    return owners, np.repeat(bands, width)


def _lattice(samples: int) -> np.ndarray:
    """Returns even directions: a Fibonacci lattice."""
    # Heights in equal steps, each turned by the golden angle.
    up = 1 - 2 * (np.arange(samples) + 0.5) / samples
    around = np.pi * (1 + 5**0.5) * np.arange(samples)
    return _on_sphere(around, np.arcsin(up))


def _on_sphere(azimuth: np.ndarray, elevation: np.ndarray) -> np.ndarray:
    level = np.cos(elevation)
    return np.stack([level * np.cos(azimuth), level * np.sin(azimuth), np.sin(elevation)], axis=-1)
