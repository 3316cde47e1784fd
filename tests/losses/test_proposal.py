"""The loss of proposals against a loop over all pairs of intervals."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import scenegraph as sg
from scenegraph.losses import missed_weight
from support.helpers import assert_close


def naive(edges, weights, seen_edges, seen_weights):
    total = 0.0
    for low, high, seen in zip(seen_edges[:-1], seen_edges[1:], seen_weights, strict=True):
        touching = (edges[1:] > low) & (edges[:-1] < high)
        total += max(0.0, seen - weights[touching].sum()) ** 2 / (seen + 1e-7)
    return total


def histogram(rng, count):
    return np.sort(rng.uniform(size=count + 1)), rng.dirichlet(np.ones(count))


def test_what_is_missed():
    rng = np.random.default_rng(0)
    for count, seen in ((3, 8), (8, 3), (6, 6), (1, 4)):
        cover, looked = histogram(rng, count), histogram(rng, seen)
        found = missed_weight(*(jnp.asarray(x, jnp.float32) for x in (*cover, *looked)))
        assert_close(found, naive(*cover, *looked), 1e-4, 1e-6)


def test_a_histogram_misses_nothing_of_itself():
    edges, weights = (jnp.asarray(x) for x in histogram(np.random.default_rng(1), 7))
    assert float(missed_weight(edges, weights, edges, weights)) < 1e-10


@pytest.mark.slow
def test_a_proposal_learns_where_a_cloud_is():
    """Its own field is held; from an even fog the proposal gathers where the cloud is."""
    cloud = sg.fields.GaussianBlob([0.0, 0.0, 0.3], 0.2, 6.0, [0.9, 0.3, 0.1])
    guess = sg.fields.GaussianBlob([0.0, 0.0, -0.3], 0.5, 0.5, [0.0, 0.0, 0.0])
    box = sg.Box([-1.0] * 3, [1.0] * 3)
    levels = sg.Hierarchical((24, 24), proposals=True)
    view = sg.PerspectiveCamera.look_at([3.0, 1.0, 0.2], [0.0] * 3, [0.0, 0.0, 1.0], 0.5, 8, 8)
    rays = sg.data.pixel_rays(view)
    batch = sg.data.Batch(rays, jnp.zeros((64, 3)), jnp.ones(64))

    @jax.jit
    def loss(proposal):
        moved = sg.Scene(
            sg.Group(cloud=sg.Volume(cloud, box, proposal=proposal)), integrator=levels
        )
        seen = sg.render_rays(moved, rays)
        return sg.losses.ProposalLoss()(seen, batch, moved)[1].losses[0]

    before = float(loss(guess))
    slope = jax.jit(jax.grad(loss))
    for _ in range(60):
        guess = jax.tree.map(lambda x, g: x - 0.3 * jnp.clip(g, -0.1, 0.1), guess, slope(guess))
    assert float(loss(guess)) < 0.3 * before
