"""Samples asked in rounds, against a naive loop over rays and against all of them at once."""

import dataclasses
import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, strategies as st

import scenegraph as sg
from scenegraph.fields import ConstantFog, GaussianBlob
from scenegraph.integrators import OccupancyMarch
from scenegraph.integrators._rounds import even_shares
from scenegraph.scene import Occupancy
from support.helpers import assert_close


render_rays = eqx.filter_jit(sg.render_rays)
CANDIDATES, RAYS = 12, 30
FULL = OccupancyMarch(CANDIDATES, CANDIDATES)
# A little less than opaque, so that some rays end and others go on.
OPAQUE = 0.5


def rays():
    camera = sg.PerspectiveCamera.look_at(
        [0.3, -4, 0.5], [0, 0, 0], [0, 0, 1], 0.4, 6, 5, near=1.0, far=8.0
    )
    return sg.data.pixel_rays(camera)


def scene(**others):
    """A blob in fog, of whose cells half are known to be empty."""
    empty = np.random.default_rng(3).uniform(size=(4, 4, 4)) < 0.4
    known = Occupancy.everywhere(4).without(jnp.asarray(empty))
    blob = GaussianBlob([0.1, 0.0, 0.1], 0.5, 4.0, (0.9, 0.2, 0.1))
    box = sg.Box([-0.8, -0.7, -0.6], [0.5, 0.6, 0.7])
    air = sg.Volume(ConstantFog(0.02, (0.1, 0.2, 0.3)), box, occupancy=known)
    blob = sg.Volume(blob, box, occupancy=known)
    return sg.Scene(sg.Group(blob=blob, air=air, **others), background=(0.2, 0.4, 0.6))


def same_picture(actual, expected, tolerance=1e-6):
    for name in ("rgb", "alpha", "depth"):
        assert_close(getattr(actual, name), getattr(expected, name), 0, tolerance)


# --- Nothing is opaque


@pytest.mark.parametrize("key", [None, jax.random.key(1)], ids=["even", "jittered"])
@pytest.mark.parametrize("rounds", [2, 3, 5])
def test_rounds_alone_change_nothing(rounds, key):
    whole = render_rays(scene(), rays(), FULL, key=key)[-1]
    march = dataclasses.replace(FULL, rounds=rounds, opaque=1.0)
    seen = render_rays(scene(), rays(), march, key=key)[-1]
    assert whole.alpha.max() > 0.9 and len(set(whole.asked.tolist())) > 3
    same_picture(seen, whole)
    np.testing.assert_array_equal(seen.asked, whole.asked)
    assert not np.any(seen.overflow)


def test_gradients_through_rounds_are_the_same():
    target = jnp.asarray(np.random.default_rng(0).uniform(size=(RAYS, 3)))

    @eqx.filter_jit
    @eqx.filter_grad
    def slopes(scene, march):
        seen = sg.render_rays(scene, rays(), march)[-1]
        return jnp.mean((seen.rgb - target) ** 2) + 0.1 * jnp.mean(seen.depth)

    whole = slopes(scene(), FULL)
    parts = slopes(scene(), dataclasses.replace(FULL, rounds=3, opaque=1.0))
    some = 0
    for a, b in zip(jax.tree.leaves(parts), jax.tree.leaves(whole), strict=True):
        assert_close(a, b, 1e-4, 1e-6)
        some += float(np.abs(b).max()) > 1e-4
    assert some > 5


def test_with_surfaces_between():
    wall = sg.Surface(sg.Plane([0.0, 0.2, 0.0], [0.0, 1.0, 0.2]), [0.1, 0.8, 0.3], 0.5)
    marches = FULL, dataclasses.replace(FULL, rounds=3, opaque=1.0)
    whole, parts = (
        render_rays(scene(wall=wall), rays(), sg.Joint(march, sg.Surfaces(2)))[-1]
        for march in marches
    )
    same_picture(parts, whole)


def test_normals_and_median_depth_are_the_same():
    camera = sg.PerspectiveCamera.look_at([0.3, -4, 0.5], [0, 0, 0], [0, 0, 1], 0.4, 6, 5)
    marches = FULL, dataclasses.replace(FULL, rounds=3, opaque=1.0)
    whole, parts = (
        sg.render(scene(), camera, march, normals=True, median_depth=True) for march in marches
    )
    assert_close(parts.normal, whole.normal, 0, 1e-5)
    assert_close(parts.median_depth, whole.median_depth, 0, 1e-5)


# --- Rays end


def naive(budget, rounds, opaque):
    """How many samples each ray wants, how many are missing, and the opacity of those it has."""
    alphas = [_alphas(ray) for ray in range(RAYS)]
    done, wants = np.zeros(RAYS, int), np.array([len(a) for a in alphas])
    for later in reversed(range(rounds)):
        shares = (one_by_one if later else all_or_nothing)(wants, -(-budget * RAYS // rounds))
        done, wants = done + shares, wants - shares
        opacities = np.array([_opacity(a, n) for a, n in zip(alphas, done, strict=True)])
        wants = np.where((opacities >= opaque) & (later > 0), 0, wants)
    return done + wants, wants, opacities


def one_by_one(wants, room):
    """Every ray gets one more in turn, while it wants more and there is room."""
    shares = np.zeros_like(wants)
    while room and np.any(shares < wants):
        for ray in np.flatnonzero(shares < wants)[:room]:
            shares[ray], room = shares[ray] + 1, room - 1
    return shares


def all_or_nothing(wants, room):
    return np.array([w * (sum(wants[: n + 1]) <= room) for n, w in enumerate(wants)])


@functools.cache
def _alphas(ray):
    """The opacities of the samples of one ray, from the picture of that ray alone, step by step."""
    one = jax.tree.map(lambda x: x[ray : ray + 1], rays())
    span = jax.tree.map(lambda x: x[0], jax.vmap(scene().root.span)(one))
    ends = np.linspace(span.near, max(span.near, span.far), CANDIDATES + 1)
    known = sg.scene.thaw(scene())
    alphas = []
    for near, far in zip(ends[:-1], ends[1:], strict=True):
        part = sg.rays.Span(near, far)
        if not known.root.occupied(jax.tree.map(lambda x: x[0], one), part):
            continue
        cut = dataclasses.replace(one, near=jnp.array([near]), far=jnp.array([far]))
        alphas.append(float(_one_step(cut)))
    return alphas


def _one_step(ray):
    return render_rays(scene(), ray, sg.Hierarchical((1,)))[-1].alpha[0]


def _opacity(alphas, count):
    return 1 - np.prod(1 - np.array(alphas[:count]))


@pytest.mark.parametrize("rounds", [2, 3])
@pytest.mark.parametrize("budget", [2, 4, CANDIDATES])
def test_rays_that_are_opaque_want_no_more(budget, rounds):
    march = OccupancyMarch(CANDIDATES, budget, rounds=rounds, opaque=OPAQUE)
    seen = render_rays(scene(), rays(), march)[-1]
    asked, missing, alpha = naive(budget, rounds, OPAQUE)
    np.testing.assert_array_equal(seen.asked, asked)
    np.testing.assert_array_equal(seen.overflow, missing)
    assert_close(seen.alpha, np.where(missing > 0, 0, alpha), 0, 1e-5)


def test_the_naive_loop_has_seen_all_cases():
    """Rays that end, rays that go on, and rays without room."""
    everything = render_rays(scene(), rays(), FULL)[-1].asked
    asked, missing, _ = naive(4, 3, OPAQUE)
    ended = asked < everything
    assert np.any(ended) and np.any(~ended & (missing == 0) & (asked > 2)) and np.any(missing)
    assert not np.any(naive(CANDIDATES, 3, OPAQUE)[1])


def test_no_more_is_lost_than_what_is_behind():
    march = dataclasses.replace(FULL, rounds=6, opaque=0.9)
    whole, seen = (render_rays(scene(), rays(), x)[-1] for x in (FULL, march))
    assert seen.asked.sum() < whole.asked.sum() and not np.any(seen.overflow)
    lost = np.asarray(whole.alpha - seen.alpha)
    assert lost.min() > -1e-6 and 1e-3 < lost.max() < 0.1
    # Instead of what is behind, the background is seen, and no colour is beyond 0 and 1.
    assert np.abs(seen.rgb - whole.rgb).max() <= lost.max() + 1e-6


# --- Shares and settings


@given(st.lists(st.integers(0, 6), min_size=5, max_size=5), st.sampled_from([1, 4, 9, 30]))
def test_even_shares_are_handed_out_one_by_one(wanted, room):
    shares = even_shares(jnp.array(wanted), room, 6)
    np.testing.assert_array_equal(shares, one_by_one(np.array(wanted), room))


def test_impossible_settings_are_refused():
    with pytest.raises(ValueError, match="`rounds` must be at least 1; got 0"):
        OccupancyMarch(rounds=0)
    for opaque in (0.0, 1.5):
        with pytest.raises(ValueError, match=f"`opaque` must be above 0 .* got {opaque}"):
            OccupancyMarch(opaque=opaque)
