"""Known points on rays: the loss against a walk along the ray, and fits that it leads."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import scenegraph as sg
from scenegraph.data import RayBatches, Sightings
from scenegraph.fitting import RenderLoss
from scenegraph.losses import missed_point
from support.helpers import assert_close


KEY = jax.random.key(0)


def naive(edges, weights, t, tolerance):
    """Walks along a ray from interval to interval."""
    before = behind = 0.0
    for low, high, weight in zip(edges[:-1], edges[1:], weights, strict=True):
        if high <= t - tolerance * t:
            before += weight
        elif low > t + tolerance * t:
            behind += weight
    passed = 1 - (sum(weights) - behind)
    return before**2 + passed**2


def test_what_is_missed():
    rng = np.random.default_rng(0)
    for count in (1, 2, 7):
        edges = np.sort(rng.uniform(1, 4, count + 1))
        weights = 0.9 * rng.dirichlet(np.ones(count))
        for t, tolerance in ((0.5, 0.03), (2.0, 0.1), (2.5, 0.3), (9.0, 0.03)):
            found = missed_point(jnp.asarray(edges), jnp.asarray(weights), t, tolerance=tolerance)
            assert_close(found, naive(edges, weights, t, tolerance), 1e-5, 1e-6)


def test_an_opaque_wall_is_missed_or_not():
    edges, wall = jnp.linspace(0, 10, 101), jnp.zeros(100).at[50].set(1.0)
    assert [float(missed_point(edges, wall, t)) for t in (5.05, 9.0, 2.0)] == [0.0, 1.0, 1.0]
    assert float(missed_point(edges, 0 * wall, 5.0)) == 1.0


def test_no_length_is_no_number():
    edges, weights = jnp.array([1.0, 2.0, 2.0, 3.0]), jnp.array([0.2, 0.3, 0.4])
    value, slope = jax.value_and_grad(missed_point, 1)(edges, weights, 2.0)
    assert np.isfinite(value) and np.isfinite(slope).all()


# --- In batches, and in fits


def slab_views(share: float = 1.0) -> sg.Views:
    """A grey picture of a wall across the view at a distance of 2, whose points are known."""
    camera = sg.PerspectiveCamera.look_at([0.0, -2.0, 0.0], [0.0] * 3, [0.0, 0.0, 1.0], 0.7, 8, 6)
    camera = dataclasses.replace(camera, near=jnp.asarray(0.5), far=jnp.asarray(4.0))
    views = sg.views(camera, np.full((6, 8, 3), 128, np.uint8))
    rays = views.rays(jnp.arange(48))
    points = rays.origin + rays.direction * (2 / rays.direction[:, 1:2])
    known = np.random.default_rng(0).permutation(48)[: round(48 * share)]
    sightings = Sightings(jnp.asarray(known), points[known])
    return dataclasses.replace(views, sightings=sightings)


def test_the_last_rays_of_a_batch_meet_known_points():
    views = slab_views(share=0.25)
    batches = RayBatches(views, 16, sighted=6)
    batch, other = batches.batch(0, 3), batches.batch(0, 4)
    assert np.isinf(batch.points[:10]).all() and not np.array_equal(batch.points, other.points)
    known = np.asarray(views.sightings.point)
    for origin, direction, point in zip(
        batch.rays.origin[10:], batch.rays.direction[10:], batch.points[10:], strict=True
    ):
        assert np.any(np.all(known == np.asarray(point), axis=1))
        assert_close(np.cross(direction, point - origin), np.zeros(3), 1e-5, 1e-5)
    plain = RayBatches(views, 16).batch(0, 3)
    assert plain.points is None and plain.rgb.shape == batch.rgb.shape


@pytest.mark.parametrize("sighted", [-1, 16])
def test_numbers_of_rays_that_cannot_be(sighted):
    with pytest.raises(ValueError, match="sighted"):
        RayBatches(slab_views(), 16, sighted=sighted)
    with pytest.raises(ValueError, match="without"):
        RayBatches(dataclasses.replace(slab_views(), sightings=None), 16, sighted=2)


def fog() -> sg.Scene:
    grid = sg.encodings.Grid((4, 8), features=2, capacity=2**10, key=KEY)
    field = sg.fields.GridField(grid, width=16, key=KEY)
    box = sg.Box([-1.5, -1.5, -1.5], [1.5, 1.5, 1.5])
    return sg.Scene(sg.Group(fog=sg.Volume(field, box)), integrator=sg.Hierarchical((32,)))


@pytest.mark.parametrize("chunk", ["auto", None, 5])
def test_the_term_is_that_of_a_loop(chunk):
    scene, batch = fog(), RayBatches(slab_views(), 16, sighted=6).batch(0, 0)
    losses = [RenderLoss(jitter=False, chunk=chunk, point_weight=x) for x in (0.0, 0.5)]
    without, with_points = (loss(scene, None, batch, KEY)[0] for loss in losses)
    level = sg.render_rays(scene, batch.rays)[-1]
    total = 0.0
    for ray in range(10, 16):
        away = np.linalg.norm(batch.points[ray] - batch.rays.origin[ray])
        t = away / np.linalg.norm(batch.rays.direction[ray])
        total += float(missed_point(level.edges[ray], level.weights[ray], jnp.asarray(t)))
    assert_close(with_points - without, 0.5 * total / 16, 1e-3)


def test_pixels_without_weight_do_not_count():
    scene, batch = fog(), RayBatches(slab_views(), 16, sighted=6).batch(0, 0)
    masked = dataclasses.replace(batch, lossmult=jnp.ones(16).at[10:].set(0.0))
    losses = [RenderLoss(jitter=False, point_weight=x) for x in (0.0, 0.5)]
    assert len({float(loss(scene, None, masked, KEY)[0]) for loss in losses}) == 1


def test_integrators_without_intervals_are_refused():
    batch = RayBatches(slab_views(), 16, sighted=6).batch(0, 0)
    with pytest.raises(ValueError, match="Guided"):
        RenderLoss(integrator=sg.Hierarchical((1,)), point_weight=1.0)(fog(), None, batch, KEY)


def test_one_grey_picture_shows_no_depth_but_its_points_do():
    """Every wall looks alike from one side: only points say at which distance it is."""
    batches, scene = RayBatches(slab_views(), 64, sighted=32), fog()
    depths = []
    for weight in (0.0, 1.0):
        loss = RenderLoss(point_weight=weight)
        how = {"optimizer": optax.adam(1e-2), "steps": 150, "key": KEY}
        fitted = sg.fit(scene, batches, loss=loss, **how).scene
        level = sg.render_rays(fitted, batches.views.rays(jnp.arange(48)))[-1]
        depths.append(float(jnp.mean(jnp.abs(level.depth - 2.0))))
        assert float(jnp.mean(level.alpha)) > 0.4
    assert depths[1] < 0.1 < depths[0]
