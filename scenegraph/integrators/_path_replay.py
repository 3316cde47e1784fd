"""Derivatives of random paths: the same paths once more, with all that was chosen held fixed.

Detached sampling: what a path meets, its directions and their densities, and what a shadow ray
passes are numbers without derivatives. What is computed from them has right ones: colours, the
radiance of lamps, and places of lamps and surfaces as far as they change shading. What moves an
edge, of a thing that is seen or of a shadow, has none.
"""

from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from .._typing import Array, Int, PyTree, UInt32
from ..numerics import choose_block
from ..rays import Ray
from ..rows import as_operands, call_late, map_rows
from ._emitters import fixed_samples, sample_again
from ._path_events import (
    begin_path,
    Event,
    find_event,
    follow,
    line_of,
    meet,
    numbers_of,
    PathOptions,
    PathScene,
    PathState,
    Seen,
)
from ._path_of_ray import no_sums, PathSums, sum_paths


def integrate_paths(
    shared: PathScene, rays: Ray, words: UInt32[Array, "rays 2"], how: PathOptions
) -> PathSums:
    """Sums what all paths of rays show, with derivatives."""
    shapes = jax.eval_shape(lambda: no_sums(rays.near))
    compute, push = partial(sum_paths, how=how), partial(_push, how=how)
    return call_late(compute, push, shapes, shared, rays, words)


def _push(primals: tuple, tangents: tuple, how: PathOptions) -> tuple[PathSums, PathSums]:
    (shared, rays, words), (change, of_rays, _) = primals, tangents
    # By this function again, so that second derivatives know how these values change.
    sums = integrate_paths(shared, rays, words, how)
    how = how._replace(replays=True, moves=_moves(change, of_rays))
    replay = lambda shared, rays: _replay(shared, rays, words, how)
    pushed = eqx.filter_jvp(replay, (shared, rays), (change, of_rays))[1]
    return sums, pushed._replace(square=None, cut=None)


def _moves(change: PathScene, of_rays: Ray) -> bool:
    """Returns true if lamps, surfaces or rays change their places; `change` is `None` elsewhere."""
    scene, emitters = change.scene, change.emitters
    dull = [eqx.tree_at(_opacities, x, (None, None), is_leaf=_is_none) for x in scene.occluders]
    lamps = [eqx.tree_at(_radiances, x, (None, None), is_leaf=_is_none) for x in emitters.lamps]
    points = None if scene.triangles is None else scene.triangles.vertices.point
    return bool(jax.tree.leaves((dull, lamps, points, of_rays)))


def _opacities(stack: Any) -> tuple:
    return stack.members.node.opacity, stack.shared.node.opacity


def _radiances(stack: Any) -> tuple:
    return stack.members.node.radiance, stack.shared.node.radiance


def _is_none(x: Any) -> bool:
    return x is None


# Paths that are followed at a time: what they met is kept until their derivatives are known.
_BLOCK = 2**14
# Partly transparent surfaces on a path that it is followed through; those behind count as fixed.
_MOST_PASSED = 8


def _replay(
    shared: PathScene, rays: Ray, words: UInt32[Array, "rays 2"], how: PathOptions
) -> PathSums:
    """Sums what all paths of rays show, some samples of all rays at a time."""
    count = rays.near.shape[0]
    at_once = max(1, min(choose_block(_BLOCK) // max(count, 1), how.samples))

    @jax.checkpoint
    def add(sums: PathSums, first: Int[Array, ""]) -> tuple[PathSums, None]:
        samples = first + jnp.arange(at_once, dtype=jnp.int32)
        again = lambda x: jnp.broadcast_to(x, (at_once, *x.shape)).reshape(-1, *x.shape[1:])
        lines, keys = jax.tree.map(again, (rays, words))
        seen = _follow_all(shared, lines, keys, jnp.repeat(samples, count), how)
        total = jax.tree.map(lambda x: jnp.sum(x.reshape(at_once, count, *x.shape[1:]), 0), seen)
        more = total.radiance, total.share, total.t, total.normal, total.albedo, total.point
        names = "rgb", "hits", "t", "normal", "albedo", "point"
        return sums._replace(
            **{x: getattr(sums, x) + y for x, y in zip(names, more, strict=True)}
        ), None

    firsts = jnp.arange(0, how.samples, at_once, dtype=jnp.int32)
    return jax.lax.scan(add, no_sums(rays.near), firsts)[0]


def _follow_all(
    shared: PathScene,
    rays: Ray,
    words: UInt32[Array, "rows 2"],
    samples: Int[Array, " rows"],
    how: PathOptions,
) -> Seen:
    """Follows one path a row."""
    begin = lambda _, row: begin_path(*row)
    state = map_rows(begin, None, (rays, words, samples))
    still = jax.lax.stop_gradient
    known = as_operands(still(shared))
    active = (samples < how.samples) & (rays.far > rays.near)
    zeros = lambda *shape: jnp.zeros((*rays.near.shape, *shape), rays.near.dtype)
    nothing = Seen(zeros(3), zeros(), zeros(), zeros(3), zeros(3), zeros(3))

    def step(carry: tuple, _: None) -> tuple[tuple, None]:
        state, active, total = carry
        rows = state, rays, words
        event = still(map_rows(partial(_find, how=how), known, still(rows), used=active))
        again = partial(_again, how=how)
        state, seen, ends = map_rows(again, shared, (*rows, event), used=active)
        return (state, active & ~ends, jax.tree.map(jnp.add, total, seen)), None

    length = how.bounces + 2 + _MOST_PASSED

    def step_if_any(carry: tuple, _: None) -> tuple[tuple, None]:
        skip = lambda carry: (carry, None)
        return jax.lax.cond(jnp.any(carry[1]), lambda x: step(x, None), skip, carry)

    return jax.lax.scan(step_if_any, (state, active, nothing), None, length)[0][2]


def _find(shared: PathScene, row: tuple, how: PathOptions) -> Event:
    state, ray, words = row
    line, numbers = line_of(state, ray), numbers_of(state, words)
    return find_event(shared, state, line, numbers, jnp.ones((), bool), how)[0]


def _again(shared: PathScene, row: tuple, how: PathOptions) -> tuple[PathState, Seen, PyTree]:
    """Follows a path past an event that was found."""
    state, ray, words, event = row
    line, numbers = line_of(state, ray), numbers_of(state, words)
    met = meet(shared, line, event.found, how.parts)
    if event.way is not None:
        point = met.hit.point
        way = sample_again(shared.emitters, point, numbers.light, event.way)
        if not how.moves:
            # The direction to a lamp is one of those that were chosen.
            fixed = event.way
            way = way._replace(way=fixed.way, direction=fixed.direction, density=fixed.density)
        event = event._replace(way=way)
    fixed = fixed_samples(shared.emitters, met.hit)
    state, seen, ends, _ = follow(shared, state, line, numbers, event, met, fixed, how)
    return state, seen, ends
