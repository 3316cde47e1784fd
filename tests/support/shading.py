"""Hits on surfaces, and what shaders answer at them, for the tests of the shaders."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from scenegraph import rays


UP = np.array([0.0, 0.0, 1.0])


def pattern_hit(place, slopes) -> rays.Hit:
    """A hit with these coordinates, `uv` if there are two; slopes are `n 2`."""
    place, slopes = jnp.asarray(place), jnp.asarray(slopes)
    point, d_point = jnp.zeros(3, place.dtype), jnp.zeros((2, 3), place.dtype)
    uv, duv = jnp.zeros(2, place.dtype), jnp.zeros((2, 2), place.dtype)
    if place.shape[0] == 2:
        uv, duv = place, slopes.T
    else:
        point, d_point = place, slopes.T
    up = jnp.asarray(UP, place.dtype)
    return rays.Hit(1.0, point, up, uv, duv, 1.0, d_point=d_point)


def color_at(shader, place, slopes):
    """Of one hit, without light; to be compiled."""
    hit = pattern_hit(place, slopes)
    down = -jnp.asarray(UP, hit.uv.dtype)
    return shader(hit, down, rays.no_light(hit.uv.dtype))


@eqx.filter_jit
def colors_at(shader, places, slopes):
    """Of many hits, `rays n` and `rays n 2`."""
    return jax.vmap(lambda place, slope: color_at(shader, place, slope))(places, slopes)


def colors(shader, places, slopes) -> np.ndarray:
    """As above, of numpy arrays of any float type."""
    return np.asarray(colors_at(shader, jnp.asarray(places), jnp.asarray(slopes)), float)


def footprint_mean(function, place, slopes, count: int = 300) -> np.ndarray:
    """The plain mean of a numpy function over the parallelogram that a pixel covers."""
    steps = (np.arange(count) + 0.5) / count - 0.5
    pixel = np.stack(np.meshgrid(steps, steps), axis=-1).reshape(-1, 2)
    return np.mean(function(np.asarray(place) + pixel @ np.asarray(slopes).T), axis=0)


def lit_hit(normal=UP) -> rays.Hit:
    """A hit whose normal matters alone."""
    return rays.Hit(1.0, jnp.zeros(3), jnp.asarray(normal), jnp.zeros(2), jnp.zeros((2, 2)), 1.0)


def lit_color(shader, light, eye, normal=UP, ambient=0.0):
    """Under one light of irradiance one: what comes to the eye of it. Vectors have length one."""
    light = jnp.asarray(light)
    ones = jnp.ones((1, 3), light.dtype)
    lights = rays.Irradiance(light[None], ones, jnp.full(3, ambient, light.dtype))
    return shader(lit_hit(normal), -jnp.asarray(eye), lights)


@eqx.filter_jit
def lit_colors(shader, lights, eyes):
    """For many pairs of directions on a surface that looks upwards."""
    return jax.vmap(lambda light, eye: lit_color(shader, light, eye))(lights, eyes)


def upper_directions(count: int, seed: int = 0) -> np.ndarray:
    """Evenly in the solid angle above the surface."""
    rng = np.random.default_rng(seed)
    height, around = rng.uniform(size=count), rng.uniform(0, 2 * np.pi, count)
    across = np.sqrt(1 - height**2)
    return np.stack([across * np.cos(around), across * np.sin(around), height], axis=-1)
