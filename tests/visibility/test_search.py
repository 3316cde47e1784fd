"""What rays find on lists: all that they touch, and nothing else."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import scenegraph as sg
from scenegraph.flat import flatten, intersect, occlusion, part_alphas
from scenegraph.rays import Ray
from scenegraph.visibility import find_layers, transmission
from scenegraph.visibility._list_search import MANY


def _scene(count: int, shape: type) -> sg.Scene:
    draw = np.random.default_rng(3)
    middle, size = draw.uniform(-2, 2, (count, 3)), draw.uniform(0.02, 0.3, count)
    bounds = lambda m, s: (m - s, m + s) if shape is sg.Box else (m, s)
    return sg.Scene(
        sg.Group(
            **{
                f"thing{i}": sg.Surface(shape(*bounds(m, s)), [0.5] * 3, opacity=0.7)
                for i, (m, s) in enumerate(zip(middle, size, strict=True))
            }
        )
    )


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


# Kinds of no more members are walked by bundles, larger ones ray by ray.
@pytest.mark.parametrize("count", [MANY // 8, MANY + 40])
@pytest.mark.parametrize("shape", [sg.Sphere, sg.Box])
def test_rays_find_what_a_loop_over_all_things_finds(count, shape):
    flat, rays = flatten(_scene(count, shape)), _rays(256)
    used = np.arange(256) % 7 > 0
    found = jax.jit(find_layers, static_argnums=3)(flat, rays, jnp.asarray(used), 64)
    stack = flat.occluders[0]

    def of_ray(ray):
        hits = stack.map(lambda thing: intersect(thing, ray))
        return hits.t, jax.vmap(part_alphas)(hits)

    t, alphas = map(np.asarray, jax.jit(jax.vmap(of_ray))(rays))
    # Opacities of less than rounding may be there or not.
    assert np.sum(alphas > _LEAST, axis=(1, 2)).max() > 2
    nearest = np.sort(np.where(alphas > _LEAST, t, np.inf).reshape(256, -1), axis=1)[:, :64]
    keys = np.sort(np.where(found.values > _LEAST, found.keys, np.inf), axis=0).T
    columns = min(nearest.shape[1], 64)
    np.testing.assert_allclose(keys[used, :columns], nearest[used], rtol=1e-5)
    passes = np.prod(1 - np.asarray(found.values), axis=0) * found.rest
    np.testing.assert_allclose(passes[used], np.prod(1 - alphas, axis=(1, 2))[used], atol=1e-5)


@pytest.mark.parametrize("count", [MANY // 8, MANY + 40])
def test_shadow_rays_are_stopped_by_what_a_loop_over_all_things_finds(count):
    flat, rays = flatten(_scene(count, sg.Sphere)), _rays(256)
    used, own = np.arange(256) % 5 > 0, jnp.full(256, -1)
    arrives, stopped = jax.jit(transmission)(flat, rays, own, jnp.asarray(used))
    stack = flat.occluders[0]
    of_ray = lambda ray: stack.map(lambda thing: occlusion(thing, ray, jnp.asarray(-1)))
    each = np.asarray(jax.jit(jax.vmap(of_ray))(rays), np.float64)
    assert np.sum(each > 1e-3, axis=1).max() > 1
    np.testing.assert_allclose(arrives[used], np.prod(1 - each, axis=1)[used], rtol=1e-4, atol=1e-7)
    np.testing.assert_array_equal(stopped[used], np.sum(each > 1e-3, axis=1)[used])
