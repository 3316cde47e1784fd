"""From densities to pictures: the published numbers, closed forms, empty rays."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from scenegraph.compositing import composite, interval_weights, optical_depths, over, transmittance
from scenegraph.rays import Medium
from support.helpers import assert_close, assert_finite_gradients, assert_gradients, golden


# Compiled as a whole: operation by operation takes several times as long.
composite, interval_weights, optical_depths, over, transmittance = map(
    eqx.filter_jit, (composite, interval_weights, optical_depths, over, transmittance)
)
EDGES, DIRECTION = jnp.array([2.0, 2.5, 3.5, 4.0]), jnp.array([0.0, 3.0, -4.0])
COLORS = jnp.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])


@pytest.mark.parametrize(("name", "background"), [("white", 1.0), ("black", 0.0)])
def test_published_rendering(name, background):
    """Among the rays: one without density, one almost without, a wall, a spike."""
    data = golden("mip_math")
    density = jnp.asarray(data["volrend.in_density"][..., 0])
    assert not np.any(density[0])

    def look(density, rgb, edges, direction):
        radiance = composite(Medium(density, rgb), edges, direction, empty_depth_near=True)
        return radiance, over(radiance.rgb, radiance.alpha, jnp.full(3, background))

    inputs = (data[key] for key in ("volrend.in_rgb", "t_vals", "rays.directions"))
    radiance, rgb = jax.jit(jax.vmap(look))(density, *map(jnp.asarray, inputs))
    assert_close(rgb, data[f"volrend.{name}.rgb"], 2e-6)
    assert_close(radiance.alpha, data[f"volrend.{name}.acc"], 2e-6)
    assert_close(radiance.weights, data[f"volrend.{name}.weights"], 2e-6)
    assert_close(radiance.depth, data[f"volrend.{name}.distance"], 2e-6)


def test_fog_of_constant_density():
    """Beer and Lambert: opacity is one minus the exponential of density times length."""
    radiance = composite(Medium(jnp.full(3, 0.2), jnp.ones((3, 3))), EDGES, DIRECTION)
    assert_close(radiance.alpha, 1 - np.exp(-0.2 * 2 * 5), 1e-6)
    assert_close(radiance.rgb, np.full(3, radiance.alpha), 1e-6)


def test_weights_are_differences_of_transmittance():
    depths = optical_depths(jnp.array([0.1, 0.7, 0.3]), EDGES, DIRECTION)
    assert_close(depths, [0.25, 3.5, 0.75], 1e-6)
    left = transmittance(depths)
    assert_close(left, np.exp([0, -0.25, -3.75]), 1e-6)
    assert_close(interval_weights(depths), left - np.exp([-0.25, -3.75, -4.5]), 1e-6)


def test_a_wall_hides_what_is_behind():
    radiance = composite(Medium(jnp.array([0.0, 1e6, 1e6]), COLORS), EDGES, DIRECTION)
    assert_close(radiance.rgb, [0, 1, 0])
    assert_close(radiance.depth, 3.0)


@pytest.mark.parametrize(("near", "depth"), [(True, 2.0), (False, 4.0)])
def test_depth_of_an_empty_ray(near, depth):
    empty = Medium(jnp.zeros(3), COLORS)
    radiance = composite(empty, EDGES, DIRECTION, empty_depth_near=near)
    assert (float(radiance.depth), float(radiance.alpha)) == (depth, 0)


def test_over():
    assert_close(
        over(jnp.array([0.3, 0.0, 0.1]), jnp.asarray(0.4), jnp.ones(3)), [0.9, 0.6, 0.7], 1e-6
    )


@pytest.mark.parametrize("density", [0.0, 1e-30, 1e-9, 1e4, 1e30])
@pytest.mark.parametrize("edges", [[2.0, 2.5, 3.5, 4.0], [2.0, 2.0, 2.0, 2.0]])
@pytest.mark.parametrize("near", [True, False])
def test_gradients_are_finite(density, edges, near):
    def look(density, rgb, edges, direction):
        radiance = composite(Medium(density, rgb), edges, direction, empty_depth_near=near)
        return radiance.rgb, radiance.alpha, radiance.depth, radiance.weights

    arguments = jnp.full(3, density), COLORS, jnp.array(edges)
    assert_finite_gradients(look, *arguments, DIRECTION)
    assert_finite_gradients(look, *arguments, jnp.zeros(3))


def test_a_density_of_zero_has_the_gradient_of_its_colour():
    def red(density):
        return composite(Medium(density, COLORS), EDGES, DIRECTION).rgb

    expected = np.diag([2.5, 5.0, 2.5])  # interval lengths in space
    assert_close(jax.jit(jax.jacobian(red))(jnp.zeros(3)), expected, 1e-6)


def test_gradients(x64):
    def look(density, rgb, edges, direction):
        radiance = composite(Medium(density, rgb), edges, direction)
        return radiance.rgb, radiance.alpha, radiance.depth

    arguments = jnp.array([0.1, 0.7, 0.3]), COLORS, EDGES, DIRECTION
    assert_gradients(look, *(jnp.asarray(x, jnp.float64) for x in arguments))
