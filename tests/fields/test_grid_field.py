"""A field over a grid."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from scenegraph.encodings import Grid, Positional
from scenegraph.fields import GridField
from scenegraph.rays import Gaussian
from support.helpers import assert_close, assert_gradients


SAMPLE = Gaussian([0.3, -0.2, 0.5], [0.2, -1.1, 0.4], 0.01, 0.002)
VIEW = jnp.array([0.0, 0.6, -0.8])


def small(**options):
    grid = Grid((4, 8), 4, 256, key=jax.random.key(1))
    grid = eqx.tree_at(lambda g: g.table, grid, 10 * grid.table)
    return GridField(grid, 16, 7, **options, key=jax.random.key(0))


@eqx.filter_jit
def answer(field, sample, view):
    return field(sample, view)


@eqx.filter_jit
def in_two_steps(field, sample, view):
    return field.medium(sample, field.condition(view))


def samples(count=50, seed=0):
    places = jnp.asarray(np.random.default_rng(seed).uniform(-1.2, 1.2, size=(count, 3)))
    return jax.jit(jax.vmap(lambda place: Gaussian(place, jnp.zeros(3), 0, 0)))(places)


def naive(field, features, view):
    """Matrix by matrix, in numpy, in double precision."""

    def layer(name, x):
        one = getattr(field, name)
        return np.asarray(one.weight, np.float64) @ x + np.asarray(one.bias, np.float64)

    hidden = layer("geometry", np.maximum(layer("trunk", np.asarray(features)), 0))
    direction = layer("view", np.asarray(field.view_encoding(view)))
    raw = layer("rgb", np.maximum(layer("head", hidden[1:]) + direction, 0))
    return np.exp(hidden[0] + field.density_bias), 1 / (1 + np.exp(-raw))


def test_field_is_two_small_networks():
    field = small(density_bias=-0.5)
    seen = answer(field, SAMPLE, VIEW)
    density, rgb = naive(field, eqx.filter_jit(field.encoding)(SAMPLE), VIEW)
    assert_close(seen.density, density, 1e-5)
    assert_close(seen.rgb, rgb, 1e-5)


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_the_answer_in_one_and_in_two_steps(precision):
    field = small(precision=precision)
    whole = answer(field, SAMPLE, VIEW)
    parts = in_two_steps(field, SAMPLE, VIEW)
    assert_close(whole.density, parts.density, 1e-6)
    assert_close(whole.rgb, parts.rgb, 1e-6)
    assert_close(eqx.filter_jit(field.density)(SAMPLE), whole.density, 1e-6)


@pytest.mark.slow
def test_density_is_positive_and_colour_within_zero_and_one():
    media = jax.vmap(small(), (0, None))(samples(), VIEW)
    assert np.all(media.density > 0) and np.ptp(media.density) > 0.1
    assert np.all((media.rgb > 0) & (media.rgb < 1)) and np.ptp(media.rgb) > 0.05


@pytest.mark.parametrize("bias, density", [(-1e4, np.exp(-15)), (1e4, np.exp(12))])
def test_density_stays_finite(bias, density):
    assert_close(eqx.filter_jit(small(density_bias=bias).density)(SAMPLE), density, 1e-5)


@pytest.mark.slow
def test_half_precision_is_near_and_not_the_same():
    exact, rounded = (
        jax.vmap(small(precision=name), (0, None))(samples(), VIEW)
        for name in ("float32", "bfloat16")
    )
    assert rounded.density.dtype == rounded.rgb.dtype == jnp.float32
    assert_close(rounded.rgb, exact.rgb, 0.02)
    assert_close(rounded.density, exact.density, 0.03)
    assert np.mean(rounded.rgb != exact.rgb) > 0.9


def test_weights_of_both_precisions_are_the_same():
    leaves = [jax.tree.leaves(small(precision=name)) for name in ("float32", "bfloat16")]
    for a, b in zip(*leaves, strict=True):
        np.testing.assert_array_equal(a, b)
        assert a.dtype == jnp.float32


def test_colour_depends_on_the_view_and_density_does_not():
    one, other = answer(small(), SAMPLE, VIEW), answer(small(), SAMPLE, -VIEW)
    assert float(one.density) == float(other.density)
    assert np.all(one.rgb != other.rgb)


def test_any_encoding_will_do():
    field = GridField(Positional(0, 3), 8, key=jax.random.key(0))
    assert np.isfinite(field(SAMPLE, VIEW).density)


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_every_number_that_is_read_has_a_gradient(precision):
    field = small(precision=precision)

    def total(field):
        media = jax.vmap(field, (0, None))(samples(), VIEW)
        return jnp.sum(media.density) + jnp.sum(media.rgb)

    slopes = eqx.filter_jit(jax.grad(total))(field)
    for leaf in jax.tree.leaves(slopes):
        assert np.any(leaf) and np.all(np.isfinite(leaf)) and leaf.dtype == jnp.float32
    weights, rows = jax.jit(jax.vmap(field.encoding.corners))(samples().mean)
    read = np.unique(np.asarray(rows)[np.asarray(weights) > 0])
    unread = np.setdiff1d(np.arange(len(field.encoding.table)), read)
    assert len(unread) > 10 and not np.any(np.asarray(slopes.encoding.table)[unread])


def test_gradients(x64):
    field = small()

    def answer(place, view, table, weight):
        leaves = lambda f: (f.encoding.table, f.geometry.weight)
        changed = eqx.tree_at(leaves, field, (table, weight))
        medium = changed(Gaussian(place, jnp.ones(3), 0.01, 0.02), view)
        return medium.density, medium.rgb

    place, view = jnp.array([0.31, -0.22, 0.57]), jnp.array([0.1, 0.6, -0.8])
    assert_gradients(answer, place, view, field.encoding.table, field.geometry.weight)
