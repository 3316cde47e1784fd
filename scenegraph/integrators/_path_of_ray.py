"""All random paths of one ray as one function: a loop over what paths meet, in one kernel."""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp

from .._typing import Array, Float, Int, UInt32
from ..rays import Ray
from ..rows import as_operands, map_rows
from ._path_events import (
    begin_path,
    find_event,
    follow,
    line_of,
    numbers_of,
    PathOptions,
    PathScene,
    Seen,
)


class PathSums(NamedTuple):
    """Sums over the samples of rays."""

    rgb: Float[Array, "*rays 3"]
    square: Float[Array, "*rays 3"]  # of the colours' squares
    hits: Float[Array, "*rays"]  # the number of samples that hit something
    t: Float[Array, "*rays"]
    normal: Float[Array, "*rays 3"]
    albedo: Float[Array, "*rays 3"]
    point: Float[Array, "*rays 3"]
    cut: Int[Array, "*rays"]  # the number of paths that passed too many surfaces


def no_sums(like: Float[Array, "*rays"]) -> PathSums:
    """Returns the sums of no samples."""
    zeros = lambda *shape: jnp.zeros((*like.shape, *shape), like.dtype)
    colors = zeros(3), zeros(3), zeros(), zeros(), zeros(3), zeros(3), zeros(3)
    return PathSums(*colors, jnp.zeros(like.shape, jnp.int32))


def add_seen(sums: PathSums, seen: Seen) -> PathSums:
    """Adds what an event adds, but for the squares of colours."""
    return sums._replace(
        rgb=sums.rgb + seen.radiance,
        hits=sums.hits + seen.share,
        t=sums.t + seen.t,
        normal=sums.normal + seen.normal,
        albedo=sums.albedo + seen.albedo,
        point=sums.point + seen.point,
    )


def sum_paths(
    shared: PathScene, rays: Ray, words: UInt32[Array, "rays 2"], how: PathOptions
) -> PathSums:
    """Follows all paths of rays, without derivatives."""
    return map_rows(partial(_paths_of_ray, how=how), as_operands(shared), (rays, words))


def _paths_of_ray(shared: PathScene, row: tuple, how: PathOptions) -> PathSums:
    """Follows all paths of a ray, one after the other.

    A turn of the loop is one surface that a path meets; where a path ends, the next one begins, so
    that rays of a packet need not wait for each other.
    """
    ray, words = row
    # A ray that ends where it begins, of no pixel, meets nothing.
    first = jnp.where(ray.far <= ray.near, how.samples, 0).astype(jnp.int32)

    def turn(carry: tuple) -> tuple:
        state, radiance, sums = carry
        line, numbers = line_of(state, ray), numbers_of(state, words)
        used = state.sample < how.samples
        event, met, fixed = find_event(shared, state, line, numbers, used, how)
        after, seen, ends, cut = follow(shared, state, line, numbers, event, met, fixed, how)
        seen = jax.tree.map(lambda x: jnp.where(used, x, 0), seen)
        radiance = radiance + seen.radiance
        square = jnp.where(ends, radiance**2, 0)
        sums = add_seen(sums, seen)._replace(
            square=sums.square + square, cut=sums.cut + (cut & used)
        )
        fresh = begin_path(ray, words, state.sample + 1)
        state = jax.tree.map(lambda x, y: jnp.where(ends, x, y), fresh, after)
        return state, jnp.where(ends, 0, radiance), sums

    start = begin_path(ray, words, first), jnp.zeros_like(ray.origin), no_sums(ray.near)
    goes_on = lambda carry: carry[0].sample < how.samples
    return jax.lax.while_loop(goes_on, turn, start)[2]
