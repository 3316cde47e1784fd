"""The networks of NeRF and mip-NeRF (their published numbers: `render/test_golden_forward.py`)."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from scenegraph.encodings import IntegratedPositional
from scenegraph.fields import MipNerfMLP, NerfMLP
from scenegraph.rays import Gaussian
from support.helpers import assert_close


SAMPLE = Gaussian([0.3, -0.2, 0.5], [0.2, -1.1, 0.4], 0.01, 0.002)
VIEW = jnp.array([0.0, 0.6, -0.8])


def small(**options):
    options = {"width": 16, "depth": 3, "view_width": 8, **options}
    return MipNerfMLP(**options, key=jax.random.key(0))


ask = eqx.filter_jit(lambda field, *arguments, **key: field(*arguments, **key))
density_of = eqx.filter_jit(lambda field, sample: field.density(sample))


def count(tree):
    return sum(leaf.size for leaf in jax.tree.leaves(tree))


def test_the_paper_has_612740_parameters():
    shapes = jax.eval_shape(lambda key: jax.tree.leaves(MipNerfMLP(key=key)), jax.random.key(0))
    assert sum(np.prod(leaf.shape) for leaf in shapes) == 612_740


def test_weights_are_glorot_uniform_and_biases_zero():
    layer = MipNerfMLP(key=jax.random.key(0)).network.trunk[1]
    limit = np.sqrt(6 / 512)
    assert np.abs(layer.weight).max() == pytest.approx(limit, rel=1e-3)
    assert float(layer.weight.std()) == pytest.approx(limit / np.sqrt(3), rel=1e-2)
    assert not np.any(layer.bias)


@pytest.mark.parametrize("options", [{}, {"use_view": False}, {"skip": 1}, {"view_depth": 2}])
def test_the_answer_in_one_and_in_two_steps(options):
    field = small(**options)
    both = lambda view: (field(SAMPLE, view), field.medium(SAMPLE, field.condition(view)))
    whole, parts = jax.jit(both)(VIEW)
    assert_close(whole.density, parts.density, 1e-6)
    assert_close(whole.rgb, parts.rgb, 1e-6)
    assert_close(density_of(field, SAMPLE), whole.density, 1e-6)


def test_colour_depends_on_the_view_only_if_asked():
    for use_view in (True, False):
        field = small(use_view=use_view)
        a, b = ask(field, SAMPLE, VIEW), ask(field, SAMPLE, -VIEW)
        assert float(a.density) == float(b.density)
        assert np.array_equal(a.rgb, b.rgb) != use_view


def test_noise_needs_a_key():
    field = small(density_noise=1.0)
    noisy = [float(ask(field, SAMPLE, VIEW, key=jax.random.key(i)).density) for i in range(2)]
    plain = ask(field, SAMPLE, VIEW).density
    assert len({*noisy, float(plain)}) == 3
    assert_close(plain, density_of(field, SAMPLE), 1e-6)


def test_colours_reach_beyond_zero_and_one_by_the_padding():
    output = small(rgb_padding=0.25).output
    medium = output(jnp.asarray(0.0), jnp.array([-100.0, 0.0, 100.0]), key=None)
    assert_close(medium.rgb, [-0.25, 0.5, 1.25], 1e-6)
    assert_close(medium.density, np.log1p(np.exp(-1)), 1e-6)


def test_nerf_ignores_the_spread():
    field = NerfMLP(16, 3, view_width=8, key=jax.random.key(0))
    point = Gaussian(SAMPLE.mean, SAMPLE.direction, 0, 0)
    assert_close(ask(field, SAMPLE, VIEW).rgb, ask(field, point, VIEW).rgb, 0)
    encoded = small(encoding=IntegratedPositional(0, 4))
    assert not np.array_equal(ask(encoded, SAMPLE, VIEW).rgb, ask(encoded, point, VIEW).rgb)


def test_every_weight_has_a_gradient():
    def total(field):
        medium = field(SAMPLE, VIEW)
        return medium.density + jnp.sum(medium.rgb)

    field = small()
    gradients = jax.jit(jax.grad(total))(field)
    assert count(gradients) == count(field)
    assert all(np.any(leaf) and np.all(np.isfinite(leaf)) for leaf in jax.tree.leaves(gradients))
