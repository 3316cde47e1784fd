"""The grid against a naive loop, automatic differentiation of one, and finite differences."""

import itertools
import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from scenegraph.encodings import Grid
from scenegraph.encodings._lattice import simplex_weights, table_rows
from scenegraph.rays import FullGaussian, Gaussian
from support.helpers import assert_close, assert_finite_gradients, assert_gradients


RESOLUTIONS, CAPACITY = (2, 5, 9), 128  # 27 and 216 and 1000 points: one dense level, two hashed


def small(resolutions=RESOLUTIONS, capacity=CAPACITY, features=3):
    return Grid(resolutions, features, capacity, key=jax.random.key(0))


def with_table(grid, table):
    return eqx.tree_at(lambda g: g.table, grid, table)


def point(place):
    nothing = jnp.zeros(())
    return Gaussian(jnp.asarray(place), jnp.zeros(3), nothing, nothing)


@eqx.filter_jit
def features_at(grid, places):
    return jax.vmap(lambda place: grid(point(place)))(places)


def places(count, seed=0, reach=1.0):
    return np.random.default_rng(seed).uniform(-reach, reach, size=(count, 3))


# --- Tetrahedra

ORDERS = list(itertools.permutations(range(3)))


def naive_simplex(offset):
    """From 000 to 111, along the axes in the order of how far along each the place is."""
    corner, found, before = np.zeros(3, int), {}, 1.0
    for axis in np.argsort(-np.asarray(offset), kind="stable"):
        found[tuple(corner)] = before - offset[axis]
        before = offset[axis]
        corner[axis] = 1
    found[tuple(corner)] = before
    return found


@pytest.mark.parametrize("order", ORDERS)
def test_weights_of_a_tetrahedron(order):
    offset = np.empty(3)
    offset[list(order)] = 0.8, 0.5, 0.1
    weights, corners = jax.jit(simplex_weights)(offset)
    seen = {tuple(map(int, c)): float(w) for w, c in zip(weights, corners, strict=True)}
    assert seen.keys() == naive_simplex(offset).keys()
    assert seen == pytest.approx(naive_simplex(offset), abs=1e-6)


def test_weights_sum_to_one_and_meet_at_the_place():
    """So that linear functions are reproduced; ties, faces and corners included."""
    corners = [*itertools.product((0.0, 0.5, 1.0), repeat=3)]
    offsets = np.concatenate([np.random.default_rng(0).uniform(size=(200, 3)), corners])
    weights, corners = jax.jit(jax.vmap(simplex_weights))(offsets)
    weights = np.asarray(weights)
    assert np.all(weights >= 0)
    assert_close(weights.sum(1), np.ones(len(offsets)), 1e-6)
    assert_close(np.einsum("nc,nci->ni", weights, corners), offsets, 0, 1e-6)
    assert set(map(len, (set(map(tuple, c)) for c in np.asarray(corners).tolist()))) == {4}


def test_gradient_of_the_weights_is_that_of_automatic_differentiation():
    offsets = jnp.asarray(np.random.default_rng(1).uniform(size=(200, 3)))
    own = jax.jit(jax.vmap(jax.jacobian(lambda x: simplex_weights(x)[0])))(offsets)
    plain = jax.jit(jax.vmap(jax.jacobian(lambda x: simplex_weights.fun(x)[0])))(offsets)
    np.testing.assert_array_equal(own, plain)


@pytest.mark.parametrize("order", ORDERS)
def test_gradient_of_the_weights_is_that_of_finite_differences(x64, order):
    offset = np.empty(3)
    offset[list(order)] = 0.8, 0.5, 0.1
    assert_gradients(lambda x: simplex_weights(x)[0], jnp.asarray(offset))


@jax.jit
def jacobian_and_corners(offset):
    return jax.jacobian(lambda x: simplex_weights(x)[0])(offset), simplex_weights(offset)[1]


@pytest.mark.parametrize("offset", [[0.5, 0.5, 0.2], [0.3, 0.3, 0.3], [0.2, 0.7, 0.7], [0, 0, 0]])
def test_gradient_where_tetrahedra_meet_is_that_of_one_of_them(offset):
    """Of the one whose corners are returned, within which everything is linear."""
    where = jnp.asarray(offset, float)
    jacobian, corners = map(np.asarray, jacobian_and_corners(where))
    # The place is the mean of the corners, by weights that sum to one.
    assert_close(corners.T @ jacobian, np.eye(3), 1e-6, 1e-6)
    assert_close(jacobian.sum(0), np.zeros(3), 1e-6, 1e-6)


# --- A naive loop


def naive_row(corner, resolution, capacity):
    x, y, z = map(int, corner)
    if (resolution + 1) ** 3 <= capacity:
        return (x * (resolution + 1) + y) * (resolution + 1) + z
    return ((x * 1) ^ (y * 2654435761 % 2**32) ^ (z * 805459861 % 2**32)) % capacity


def naive_grid(grid, place, spread=0.0, table=None, at=None):
    """Corner by corner; `at` says in which tetrahedra, for a place that is being traced."""
    at = np.asarray(place) if at is None else at
    table = np.asarray(grid.table, np.float64) if table is None else table
    features, start = [], 0
    for resolution in grid.resolutions:
        scaled = (np.clip(at, -1, 1) + 1) / 2 * resolution
        cell = np.minimum(np.floor(scaled), resolution - 1)
        inside = np.all(np.abs(at) <= 1)
        offset = ((place + 1) / 2 * resolution if inside else scaled) - cell
        total, corner, before = 0.0, cell.copy(), 1.0
        for axis in np.argsort(cell - scaled, kind="stable"):
            row = start + naive_row(corner, resolution, grid.capacity)
            total = total + (before - offset[axis]) * table[row]
            before = offset[axis]
            corner[axis] += 1
        row = start + naive_row(corner, resolution, grid.capacity)
        kept = math.erf(2 / resolution / (math.sqrt(8) * spread)) if spread else 1.0
        features.append(kept * (total + before * table[row]))
        start += min((resolution + 1) ** 3, grid.capacity)
    assert start == len(table)
    return features


@pytest.mark.parametrize("capacity", [CAPACITY, 2**10, 2**3])
def test_grid_is_the_naive_loop(capacity):
    """Outside of the cube as well, where the nearest place in it counts."""
    grid = small(capacity=capacity)
    there = np.concatenate([places(50, reach=1.2), [[1, 1, 1], [-1, -1, -1], [0, 0, 0], [1, 0, 5]]])
    seen = features_at(grid, jnp.asarray(there, jnp.float32))
    assert_close(seen, [np.concatenate(naive_grid(grid, x)) for x in there], 2e-5)


@pytest.mark.parametrize("spread", [0.0, 0.05, 0.3, 5.0])
def test_levels_that_are_finer_than_the_sample_fade(spread):
    """By `erf(cell / (sqrt(8) s))`, of a Gaussian of standard deviation `s` along each axis."""
    grid, place = small(), np.array([0.3, -0.2, 0.1])
    round_one = FullGaussian(jnp.asarray(place), jnp.zeros(3), spread**2 * jnp.eye(3))
    ask = eqx.filter_jit(Grid.__call__)
    assert_close(ask(grid, round_one), np.concatenate(naive_grid(grid, place, spread)), 1e-5, 1e-7)
    # What counts is the mean variance of the three axes.
    long_one = FullGaussian(jnp.asarray(place), jnp.zeros(3), jnp.diag(jnp.array([3.0, 0, 0])))
    assert_close(ask(grid, long_one), np.concatenate(naive_grid(grid, place, 1.0)), 1e-5)


def test_hash_of_known_points():
    """By hand: 3 ^ (2654435761 * 5 mod 2**32) ^ (805459861 * 7 mod 2**32)."""
    word = 3 ^ (2654435761 * 5 % 2**32) ^ (805459861 * 7 % 2**32)
    for bits in (4, 10, 19):
        assert int(table_rows(jnp.array([3, 5, 7]), 4000, 2**bits)) == word % 2**bits
    assert int(table_rows(jnp.array([3, 5, 7]), 9, 1000)) == 357


def test_every_point_of_a_dense_level_has_its_own_row():
    points = jnp.asarray(np.indices((5, 5, 5)).reshape(3, -1).T)
    assert sorted(table_rows(points, 4, 125).tolist()) == list(range(125))
    hashed = np.asarray(table_rows(points, 4, 64))
    assert hashed.min() >= 0 and hashed.max() < 64 and len(set(hashed.tolist())) > 32


# --- What it can show


def test_linear_functions_are_reproduced():
    """At every level, with the values of the function at its points."""
    slope, offset = np.array([0.7, -1.1, 0.4]), 0.2
    grid = Grid((3, 4), 1, 128, key=jax.random.key(0))
    tables = [
        (2 / n * np.indices((n + 1,) * 3).reshape(3, -1).T - 1) @ slope + offset
        for n in grid.resolutions
    ]
    grid = with_table(grid, jnp.asarray(np.concatenate(tables)[:, None], jnp.float32))
    there = places(100)
    seen = features_at(grid, jnp.asarray(there, jnp.float32))
    assert_close(seen, np.stack([there @ slope + offset] * 2, axis=1), 1e-5)


def test_features_are_continuous(x64):
    """Across cells, and across the six tetrahedra of a cell: small steps, no jumps."""
    grid = small()
    start, end = np.array([-1.1, -0.93, 1.02]), np.array([1.05, 1.2, -0.97])
    share = np.linspace(0, 1, 20_001)[:, None]
    along = jnp.asarray((1 - share) * start + share * end)
    features = features_at(grid, along)
    jumps = np.abs(np.diff(features, axis=0)).max(axis=0)
    # No steeper than the largest difference of two points, in the length of a cell.
    length = np.linalg.norm(end - start) / 20_000
    steepest = np.repeat([3 * 0.2 * n / 2 * length for n in RESOLUTIONS], 3)
    assert np.all(jumps <= 1.001 * steepest) and np.all(jumps > 0)


# --- Gradients


@pytest.mark.parametrize("capacity", [2**3, CAPACITY, 2**10])
@pytest.mark.parametrize("seed", range(3))
def test_gradient_is_that_of_a_naive_version(x64, seed, capacity):
    """With hash collisions, where a row has a part in several points."""
    grid, rng = small(capacity=capacity), np.random.default_rng(seed)
    table, at = jnp.asarray(rng.normal(size=grid.table.shape)), places(1, seed + 10)[0]
    weights = jnp.asarray(rng.normal(size=grid.size))

    def ours(table, place):
        return weights @ with_table(grid, table)(point(place))

    def naive(table, place):
        return weights @ jnp.concatenate(naive_grid(grid, place, table=table, at=at))

    seen, expected = (jax.jit(jax.grad(f, (0, 1)))(table, at) for f in (ours, naive))
    for a, b in zip(seen, expected, strict=True):
        assert_close(a, b, 1e-12)
        assert np.any(b)


@pytest.mark.parametrize("seed", range(2))
def test_gradients(x64, seed):
    """Finite differences: of the table, the place, and how far the sample spreads."""
    grid, place = small(), jnp.asarray(places(1, seed)[0])
    table = jnp.asarray(np.random.default_rng(seed).normal(size=grid.table.shape))

    def features(table, place, along, across):
        spread = Gaussian(place, jnp.array([0.0, 0.6, 0.8]), along, across)
        return with_table(grid, table)(spread)

    assert_gradients(features, table, place, jnp.asarray(0.02), jnp.asarray(0.01))


def test_gradients_of_a_point_are_finite():
    def features(place, along, across):
        return small()(Gaussian(place, jnp.array([0.0, 0.6, 0.8]), along, across))

    for place in (jnp.array([0.3, -0.2, 0.1]), jnp.zeros(3), jnp.ones(3)):
        assert_finite_gradients(features, place, jnp.zeros(()), jnp.zeros(()))


def test_no_gradient_outside():
    """There the nearest place in the cube counts, which stays as it is along that axis."""
    grid = small()
    jacobian = jax.jit(jax.jacobian(lambda place: grid(point(place))))
    slope = np.asarray(jacobian(jnp.array([1.3, 0.2, -0.4])))
    assert not np.any(slope[:, 0]) and np.all(np.any(slope[:, 1:], axis=0))


# --- Making one


def test_first_numbers_are_small_and_many():
    grid = small()
    assert grid.table.shape == (27 + 128 + 128, 3) and grid.size == 9
    assert small().size == small()(point(jnp.zeros(3))).size
    assert 0.09 < np.abs(grid.table).max() <= 0.1 and len(np.unique(grid.table)) > 800


@pytest.mark.parametrize(
    "arguments, reason",
    [
        (((),), r"got resolutions \(\)"),
        (((4, 0),), r"at least one cell .*\(4, 0\)"),
        (((4,), 0), "and 0 features"),
        (((4,), 2, 100), "power of two; got 100"),
        (((4,), 2, 0), "power of two; got 0"),
    ],
)
def test_impossible_grids_are_refused(arguments, reason):
    with pytest.raises(ValueError, match=reason):
        Grid(*arguments, key=jax.random.key(0))


@pytest.mark.parametrize(("resolution", "rows"), [(100, 101**3), (102, 103**3)])
def test_long_tables_have_equal_parts_for_many_devices(resolution, rows):
    """1,030,301 rows are fewer than a long table has; 1,092,727 are not."""
    grid = jax.eval_shape(lambda: Grid((resolution,), 2, 2**21, key=jax.random.key(0)))
    spare = grid.table.shape[0] - rows
    assert spare == (0 if rows < 2**20 else -rows % 256)
