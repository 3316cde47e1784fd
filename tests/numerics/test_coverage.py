"""Coverage and filtered functions against means over a fine grid of points of the pixel."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from scenegraph.numerics import (
    disk_coverage,
    filtered_sqrt,
    filtered_square_wave,
    half_plane_coverage,
    polygon_coverage,
    slab_coverage,
)
from support.helpers import assert_close, assert_finite_gradients


SIDE = 400
X, Y = np.meshgrid(*2 * [(np.arange(SIDE) + 0.5) / SIDE - 0.5])
EDGES = {  # margin, slope
    "slanted": (0.1, [0.7, -0.4]),
    "cuts a corner": (-0.5, [-0.5, 0.7]),
    "other corner": (0.5, [0.5, 0.7]),
    "through the middle": (0.0, [0.3, 0.9]),
    "along x": (0.2, [0.0, 1.3]),
    "along y": (-0.3, [-0.8, 0.0]),
    "along x, in the middle": (0.0, [0.0, -1.0]),
    "nearly along x": (0.1, [1e-3, 0.6]),
    "diagonal": (0.2, [0.5, 0.5]),
    "far inside": (5.0, [0.5, 0.4]),
    "far outside": (-5.0, [0.5, 0.4]),
}
POLYGONS = {  # margins, slopes
    "corner": ([0.1, -0.1], [[1.0, 0.2], [-0.3, 1.0]]),
    "sharp corner": ([0.2, -0.1], [[1.0, 0.2], [-1.0, 0.1]]),
    "edges that nearly coincide": ([0.1, 0.11], [[0.5, 0.7], [0.49, 0.71]]),
    "one edge twice": ([0.1, 0.2], [[0.5, 0.7], [1.0, 1.4]]),
    "thin slab": ([0.03, 0.04], [[0.4, 0.9], [-0.4, -0.9]]),
    "nothing between": ([-0.03, -0.04], [[0.4, 0.9], [-0.4, -0.9]]),
    "small square": ([0.1, 0.3, 0.1, 0.3], [[1.0, 0.3], [-1.0, -0.3], [0.3, -1.0], [-0.3, 1.0]]),
    "triangle": ([0.4, 0.2, 0.1], [[1.0, 0.0], [-0.7, 0.7], [-0.2, -0.9]]),
    "all of it": ([2.0, 3.0], [[1.0, 0.0], [0.2, 0.7]]),
    "none of it": ([2.0, -3.0], [[1.0, 0.0], [0.2, 0.7]]),
    "a constant": ([0.2, 0.1], [[0.0, 0.0], [0.2, 0.7]]),
    "a negative constant": ([-0.2, 0.1], [[0.0, 0.0], [0.2, 0.7]]),
}
WAVES = {  # argument in the middle, slopes
    "one edge": (0.9, [0.3, 0.2]),
    "along x": (1.1, [0.5, 0.0]),
    "no edge": (0.5, [0.2, 0.1]),
    "several edges": (0.3, [2.3, 0.4]),
    "many edges": (7.7, [9.1, 5.3]),
    "just two": (0.5, [0.8, 0.6]),
}


def plane(margin, slope):
    """A linear function at the points of the grid."""
    return margin + slope[0] * X + slope[1] * Y


def batch(cases):
    """Cases, each a list of arguments, as arrays with a leading axis."""
    return tuple(jnp.asarray(np.array(column, float)) for column in zip(*cases, strict=True))


def padded(margins, slopes):
    """A polygon with edges of no effect, to make four."""
    more = 4 - len(margins)
    return [*margins, *[1.0] * more], [*slopes, *[[0.0, 0.0]] * more]


def assert_slopes(function, arguments, step=1e-6, bound=1e-5):
    """Of every case of a batch, along a random direction, against differences in float64."""
    rng = np.random.default_rng(0)
    ways = tuple(rng.normal(size=x.shape) for x in arguments)
    both = jax.jit(jax.vmap(lambda *x: jax.jvp(function, x[: len(x) // 2], x[len(x) // 2 :])))
    ends = [
        tuple(x + h * way for x, way in zip(arguments, ways, strict=True)) for h in (step, -step)
    ]
    above, below = (both(*end, *ways)[0] for end in ends)
    expected = (above - below) / (2 * step)
    np.testing.assert_allclose(both(*arguments, *ways)[1], expected, rtol=bound, atol=bound)


# --- Edges


def test_half_plane():
    expected = [np.mean(plane(*edge) > 0) for edge in EDGES.values()]
    assert_close(jax.jit(jax.vmap(half_plane_coverage))(*batch(EDGES.values())), expected, 0, 4e-3)


def test_half_plane_gradient(x64):
    assert_slopes(half_plane_coverage, batch(e for e in EDGES.values() if 0.0 not in e[1]))


def test_half_plane_gradient_along_an_axis(x64):
    """By the margin: with respect to the slope such an edge is taken as turned by 1e-4."""
    margins, slopes = batch(e for e in EDGES.values() if 0.0 in e[1])
    by_margin = jax.vmap(jax.grad(half_plane_coverage))(margins, slopes)
    assert_close(by_margin, 1 / np.sum(np.abs(slopes), axis=1), 1e-6)


@pytest.mark.parametrize("margin", [-1.0, 0.0, 1.0])
def test_half_plane_without_slope(margin):
    """A step: what the function's sign says; the derivative is finite."""
    arguments = jnp.asarray(margin), jnp.zeros(2)
    assert_close(half_plane_coverage(*arguments), (np.sign(margin) + 1) / 2)
    assert_finite_gradients(half_plane_coverage, *arguments)


def test_slab():
    slopes = np.array([[0.8, 0.5], [-0.8, -0.5]])
    margins = np.array([0.2, 0.3])
    inside = (plane(margins[0], slopes[0]) > 0) & (plane(margins[1], slopes[1]) > 0)
    assert_close(slab_coverage(*map(jnp.asarray, (margins, slopes))), np.mean(inside), 0, 3e-3)


# --- Polygons


def test_polygon():
    expected = [
        np.mean(np.all([plane(*edge) > 0 for edge in zip(*polygon, strict=True)], axis=0))
        for polygon in POLYGONS.values()
    ]
    polygons = batch(padded(*polygon) for polygon in POLYGONS.values())
    assert_close(jax.jit(jax.vmap(polygon_coverage))(*polygons), expected, 0, 4e-3)
    assert_finite_gradients(jax.vmap(polygon_coverage), *polygons)


def test_polygon_gradient(x64):
    smooth = [p for name, p in POLYGONS.items() if "twice" not in name and "constant" not in name]
    assert_slopes(polygon_coverage, batch(padded(*polygon) for polygon in smooth), bound=1e-4)


def test_polygon_of_one_edge():
    """The two ways to the same number."""
    margins, slopes = batch(EDGES.values())
    covered = jax.jit(jax.vmap(polygon_coverage))(margins[:, None], slopes[:, None])
    assert_close(covered, jax.jit(jax.vmap(half_plane_coverage))(margins, slopes), 0, 1e-4)


# --- Disks


covered_by_disk = jax.jit(disk_coverage)


@pytest.mark.parametrize("radius", [1e-3, 0.01, 0.1])
def test_a_tiny_disk_has_its_area(radius):
    """In the middle of the pixel, also if seen at a slant; with its gradient."""
    slopes = jnp.array([[1.0, 0.0], [0.0, 3.0]])
    value = covered_by_disk(jnp.zeros(2), slopes, jnp.asarray(radius))
    by_radius = jax.jit(jax.grad(disk_coverage, 2))(jnp.zeros(2), slopes, jnp.asarray(radius))
    assert_close(value, np.pi / 3 * radius**2, 1e-3)
    assert_close(by_radius, 2 * np.pi / 3 * radius, 1e-3)


def test_a_tiny_disk_anywhere():
    """Its area in any place; summed over the pixels that may see it, too."""
    places = np.stack([X, Y], axis=-1)[::8, ::8].reshape(-1, 2) * 2
    slopes, radius = jnp.eye(2), jnp.asarray(0.05)
    seen = jax.jit(jax.vmap(disk_coverage, (0, None, None)))(jnp.asarray(places), slopes, radius)
    area = np.pi * radius**2
    assert_close(4 * np.mean(seen), area, 0.02)
    assert np.max(seen) < 1.001 * area


@pytest.mark.parametrize("radius", [3.0, 10.0, 30.0])
def test_a_large_disk(radius):
    """The error is the area between the arc and its chord, 1 / (12 radius) at most."""
    turns, shifts = np.random.default_rng(0).uniform(0, 2 * np.pi, 20), np.linspace(-0.7, 0.7, 20)
    for angle, shift in zip(turns, shifts, strict=True):
        middle = (radius + shift) * np.array([np.cos(angle), np.sin(angle)])
        expected = np.mean((X + middle[0]) ** 2 + (Y + middle[1]) ** 2 < radius**2)
        covered = covered_by_disk(jnp.asarray(middle), jnp.eye(2), jnp.asarray(radius))
        assert_close(covered, expected, 0, 1 / (12 * radius) + 2e-3)


def test_disk_gradient(x64):
    slopes = [[1.0, 0.2], [-0.3, 0.9]]
    assert_slopes(disk_coverage, batch([([3.1, 2.3], slopes, 4.0), ([0.1, 0.2], slopes, 0.1)]))


# --- Filtered functions


def test_sqrt():
    """The filter is a box over the range that the function has in the pixel: exact along axes."""
    roots, slope = np.array([2.0, 0.3, -0.3, -2.0, 0.0]), np.array([1.1, 0.0])
    values = [plane(x, slope) for x in roots]
    expected = [np.mean(np.sqrt(v[v > 0])) if np.any(v > 0) else 0.0 for v in values]
    root = jax.vmap(lambda x: filtered_sqrt(x, jnp.asarray(slope)))
    assert_close(root(jnp.asarray(roots))[0], expected, 0, 4e-3)
    assert_finite_gradients(root, jnp.asarray(roots))


def test_sqrt_gradient(x64):
    slope = [0.7, 0.4]
    cases = batch([(2.0, slope), (0.3, slope), (-0.3, slope)])
    assert_slopes(lambda *x: filtered_sqrt(*x)[0], cases)


def test_the_slope_of_a_sqrt():
    """The mean of the root's slope over the part where there is one."""
    roots, slope = np.array([2.0, 0.6, 0.3, -0.3]), np.array([1.1, 0.0])
    values = [plane(x, slope) for x in roots]
    expected = [np.mean(0.5 / np.sqrt(v[v > 0])) * slope for v in values]
    root = jax.vmap(lambda x: filtered_sqrt(x, jnp.asarray(slope)))
    assert_close(root(jnp.asarray(roots))[1], expected, 0.05)


def test_square_wave():
    expected = [np.mean(1 - 2 * (np.floor(plane(*wave)) % 2)) for wave in WAVES.values()]
    assert_close(jax.jit(jax.vmap(filtered_square_wave))(*batch(WAVES.values())), expected, 0, 4e-3)


def test_square_wave_gradient(x64):
    assert_slopes(filtered_square_wave, batch(w for w in WAVES.values() if 0.0 not in w[1]))
