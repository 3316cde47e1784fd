"""What rays find on lists: all that they touch, and nothing else."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import scenegraph as sg
from scenegraph.flat import flatten, intersect, occlusion, part_alphas
from scenegraph.rays import Ray
from scenegraph.visibility import count_parts, find_passing, map_ranked
from scenegraph.visibility._search import find_shapes


MANY = 256


def _scene(*kinds: tuple[type, int]) -> sg.Scene:
    """So many things of each kind, at random."""
    draw = np.random.default_rng(3)
    shapes = [shape for shape, count in kinds for _ in range(count)]
    middle, size = draw.uniform(-2, 2, (len(shapes), 3)), draw.uniform(0.02, 0.3, len(shapes))
    # A few are so large that rays meet several.
    size *= max(1, np.sqrt(60 / len(shapes)))
    make = {
        sg.Box: lambda m, s: sg.Box(m - s, m + s),
        sg.SignedDistance: lambda m, s: _sampled_ball(m, s),
        sg.Capsule: lambda m, s: sg.Capsule(m - [s, 0, 0], m + [s, 0, s], s / 3),
    }
    things = [
        make.get(shape, shape)(m, s) for shape, m, s in zip(shapes, middle, size, strict=True)
    ]
    parts = {f"t{i}": sg.Surface(x, [0.5] * 3, opacity=0.7) for i, x in enumerate(things)}
    return sg.Scene(sg.Group(**parts))


def _sampled_ball(middle, size) -> sg.SignedDistance:
    """A ball as distances on a grid, of so many numbers that rows share them."""
    places = np.stack(np.meshgrid(*[np.linspace(-1.5, 1.5, 8)] * 3, indexing="ij"), axis=-1)
    values = size * (np.linalg.norm(places, axis=-1) - 1)
    return sg.SignedDistance.from_grid(values, middle - 1.5 * size, middle + 1.5 * size)


def _rays(count: int) -> Ray:
    """Rays from one side to the other: a grid, of which neighbours go together."""
    side = int(np.sqrt(count))
    u, v = np.meshgrid(np.linspace(-1.5, 1.5, side), np.linspace(-1.5, 1.5, side))
    way = np.stack([u.ravel(), v.ravel(), np.full(count, 2.0)], axis=1).astype(np.float32)
    start = np.broadcast_to(np.float32([0, 0, -3]), way.shape)
    wide = np.zeros((count, 2, 3), np.float32)
    wide[:, 0, 0] = wide[:, 1, 1] = 3 / side
    ends = jnp.zeros(count), jnp.full(count, 4.0)
    return Ray(*map(jnp.asarray, (start, way, way, 0 * wide, wide)), *ends)


_LEAST = 1e-4


# Kinds of no more members are walked by bundles, larger ones ray by ray; several of a sort in turn.
FEW, MORE = MANY // 8, MANY + 40
SCENES = {
    "spheres": [(sg.Sphere, FEW)],
    "many spheres": [(sg.Sphere, MORE)],
    "boxes": [(sg.Box, FEW)],
    "many boxes": [(sg.Box, MORE)],
    "three kinds": [(sg.Sphere, FEW), (sg.Box, FEW + 9), (sg.Capsule, 5)],
    "two kinds of many": [(sg.Box, MORE), (sg.Sphere, MORE + 33)],
    "one each": [(sg.Sphere, 1), (sg.Box, 1), (sg.Capsule, 1)],
    "grids": [(sg.SignedDistance, 3), (sg.Sphere, 2)],
    "kinds of all numbers": [(sg.Sphere, 1), (sg.Box, FEW), (sg.Capsule, MORE)],
}


@pytest.mark.parametrize("kinds", SCENES.values(), ids=SCENES.keys())
def test_rays_find_what_a_loop_over_all_things_finds(kinds):
    flat, rays = flatten(_scene(*kinds)), _rays(256)
    used = np.arange(256) % 7 > 0
    find = partial(find_shapes, parts=count_parts(flat), count=64)
    search = lambda shared, row: find(*shared, *row)[0]
    rows = (flat.tree, flat.cuts), (rays, jnp.asarray(used))
    found = jax.jit(partial(map_ranked, search))(*rows)

    def of_ray(ray, stack):
        hits = stack.map(lambda thing: intersect(thing, ray))
        return hits.t.ravel(), jax.vmap(part_alphas)(hits).ravel()

    each = [jax.jit(jax.vmap(lambda ray, x=x: of_ray(ray, x)))(rays) for x in flat.occluders]
    t, alphas = (np.concatenate(x, axis=1) for x in zip(*each, strict=True))
    # Opacities of less than rounding may be there or not.
    assert np.sum(alphas > _LEAST, axis=1).max() > 1
    nearest = np.sort(np.where(alphas > _LEAST, t, np.inf), axis=1)[:, :64]
    keys = np.sort(np.where(found.values > _LEAST, found.keys, np.inf), axis=0).T
    columns = min(nearest.shape[1], 64)
    np.testing.assert_allclose(keys[used, :columns], nearest[used], rtol=1e-5)
    passes = np.prod(1 - np.asarray(found.values), axis=0) * found.rest
    np.testing.assert_allclose(passes[used], np.prod(1 - alphas, axis=1)[used], atol=1e-5)


@pytest.mark.parametrize("kinds", SCENES.values(), ids=SCENES.keys())
def test_shadow_rays_are_stopped_by_what_a_loop_over_all_things_finds(kinds):
    flat, rays = flatten(_scene(*kinds)), _rays(256)
    used, own = np.arange(256) % 5 > 0, jnp.full(256, -1)
    passing = jax.jit(find_passing)(flat, rays, own, jnp.asarray(used))

    def of_ray(ray, stack):
        return stack.map(lambda thing: occlusion(thing, ray, jnp.asarray(-1)))

    each = [jax.jit(jax.vmap(lambda ray, x=x: of_ray(ray, x)))(rays) for x in flat.occluders]
    each = np.concatenate(each, axis=1, dtype=np.float64)
    assert np.sum(each > 1e-3, axis=1).max() > 1
    arrives, opaque = passing.transmission[used], each[used] >= 1
    np.testing.assert_allclose(arrives, np.prod(1 - each, axis=1)[used], rtol=1e-4, atol=1e-6)
    np.testing.assert_array_equal(passing.closed[used], np.sum(opaque, axis=1))
    open_ones = np.prod(np.where(opaque, 1, 1 - each[used]), axis=1)
    np.testing.assert_allclose(passing.product[used], open_ones, rtol=1e-4, atol=1e-6)
