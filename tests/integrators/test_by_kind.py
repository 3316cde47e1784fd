"""Functions of rows and instances of many kinds are those of each row alone."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import scenegraph as sg
from scenegraph.flat import locate, split_large
from scenegraph.integrators import _by_kind


def stacks(radii: Any) -> list:
    """Three spheres, one box and two disks; numbers are given in the order of the scene."""
    things = {f"ball{i}": sg.Sphere([float(i), 0.0, 0.0], radii[i]) for i in range(3)}
    things["box"] = sg.Box([-1.0] * 3, jnp.full(3, radii[3]))
    things |= {f"disk{i}": sg.Disk([0.0, float(i), 0.0], radii[4 + i]) for i in range(2)}
    surfaces = {name: sg.Surface(shape, [0.5] * 3) for name, shape in things.items()}
    return sg.flat.flatten(sg.Scene(sg.Group(**surfaces))).occluders


def size_times_row(instance: sg.flat.Instance, row: jax.Array) -> jax.Array:
    """Differs from kind to kind, and depends on the instance."""
    shape = instance.node.shape
    if isinstance(shape, sg.Box):
        return row[0] * jnp.sum(shape.upper)
    if isinstance(shape, sg.Sphere):
        return shape.radius**2 * jnp.sin(row[0])
    return shape.radius * row[0] ** 3


def sizes_of(radii: Any, numbers: Any, used: Any, x: Any) -> jax.Array:
    kinds = stacks(radii)
    at = locate(split_large(kinds), 6)
    return _by_kind.map_by_kind(size_times_row, kinds, at, numbers, used, x[:, None])


def expected(radii: jax.Array, number: int, x: jax.Array) -> jax.Array:
    if number == 3:
        return 3 * radii[3] * x
    return radii[number] ** 2 * jnp.sin(x) if number < 3 else radii[number] * x**3


RADII = jnp.array([0.5, 0.7, 0.9, 1.1, 1.3, 1.5])


@pytest.mark.parametrize("rows, share", [(1, 1.0), (5, 0.0), (37, 0.6), (64, 1.0)])
def test_rows_and_gradients_are_those_of_each_row_alone(rows, share):
    draw = np.random.default_rng(rows)
    numbers, used = draw.integers(0, 6, rows), draw.random(rows) < share
    x, weights = draw.normal(size=(2, rows)).astype(np.float32)

    def through_lists(radii, x):
        numbered, where = jnp.asarray(numbers), jnp.asarray(used)
        found = sizes_of(radii, numbered, where, x)
        return jnp.sum(weights * found), found

    def one_by_one(radii, x):
        each = [expected(radii, n, x[i]) if used[i] else 0.0 for i, n in enumerate(numbers)]
        found = jnp.stack([jnp.asarray(y) for y in each])
        return jnp.sum(weights * found), found

    slopes, values = jax.jit(jax.grad(through_lists, (0, 1), has_aux=True))(RADII, jnp.asarray(x))
    by_hand = jax.jit(jax.grad(one_by_one, (0, 1), has_aux=True))
    true_slopes, true_values = by_hand(RADII, jnp.asarray(x))
    np.testing.assert_allclose(values, true_values, rtol=1e-5, atol=1e-6)
    for a, b in zip(slopes, true_slopes, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)


def test_rows_map_under_a_further_vmap():
    x, numbers = jnp.linspace(0.1, 1.0, 6), jnp.arange(6)
    used = jnp.array([True, True, False, True, True, True])
    sizes = jnp.stack([RADII, 2 * RADII])

    @eqx.filter_jit
    def of_one(radii):
        return sizes_of(radii, numbers, used, x)

    found = jax.vmap(of_one)(sizes)
    for lane, radii in zip(found, sizes, strict=True):
        true = [expected(radii, n, x[n]) * used[n] for n in range(6)]
        np.testing.assert_allclose(lane, jnp.stack(true), rtol=1e-5)
