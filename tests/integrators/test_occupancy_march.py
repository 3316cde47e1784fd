"""Samples in one list for all rays, against the same samples in a row for every ray."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import scenegraph as sg
from scenegraph.encodings import Grid
from scenegraph.fields import ConstantFog, GaussianBlob, GridField
from scenegraph.flat import flatten
from scenegraph.integrators import OccupancyMarch
from scenegraph.rays import Medium
from scenegraph.scene import Occupancy
from support.helpers import assert_close


render_rays = eqx.filter_jit(sg.render_rays)
CANDIDATES = 12


def camera():
    return sg.PerspectiveCamera.look_at(
        [0.3, -4, 0.5], [0, 0, 0], [0, 0, 1], 0.4, 5, 4, near=1.0, far=8.0
    )


def rays():
    rows, columns = np.divmod(np.arange(20), 5)
    return jax.vmap(camera().ray)(jnp.stack([columns, rows], axis=-1) + 0.5)


def boxed(lower, upper, field, occupancy=None):
    return sg.Volume(field, sg.Box(lower, upper), occupancy=occupancy)


def grid_field(seed=0):
    """A field of many numbers, of middling density."""
    grid_key, key = jax.random.split(jax.random.key(seed))
    grid = Grid((3, 7), 2, 2**8, key=grid_key)
    grid = eqx.tree_at(lambda g: g.table, grid, 10 * grid.table)
    return GridField(grid, 8, 4, density_bias=0.3, key=key)


def scene_of(**children):
    return sg.Scene(sg.Group(**children), background=(0.2, 0.4, 0.6))


def alone(occupancy=None):
    return scene_of(grid=boxed([-0.8, -0.7, -0.6], [0.5, 0.6, 0.7], grid_field(), occupancy))


def overlapping():
    """Two volumes in frames of their own, and one without bounds."""
    turned = sg.Similarity([0.2, 0.1, 0.0], [0.9, 0.1, -0.2, 0.3], 1.3)
    squeezed = sg.Affine([[1.2, 0.2, 0], [0, 0.6, 0.1], [0, 0, 0.9]], [0.0, 0.3, 0.1])
    grid, blob = grid_field(1), GaussianBlob([0.1, 0.0, 0.2], 0.5, 2.0, (0.9, 0.2, 0.1))
    known = Occupancy.everywhere(4)
    return scene_of(
        grid=sg.Transformed(boxed([-0.7] * 3, [0.6] * 3, grid, known), turned),
        blob=sg.Transformed(boxed([-1.0] * 3, [0.9] * 3, blob), squeezed),
        air=sg.Volume(ConstantFog(0.05, (0.1, 0.2, 0.3)), None),
    )


SCENES = {
    "one": alone,
    "one that knows": lambda: alone(Occupancy.everywhere(4)),
    "more": overlapping,
}
every_scene = pytest.mark.parametrize("make", SCENES.values(), ids=SCENES)


def assert_same_picture(actual, expected, tolerance=1e-5):
    for name in ("rgb", "alpha", "depth"):
        assert_close(getattr(actual, name), getattr(expected, name), 0, tolerance)


def pair(scene):
    """What is seen by the march with room for all, and by the dense integrator."""
    march = OccupancyMarch(CANDIDATES, CANDIDATES)
    dense = sg.Hierarchical((CANDIDATES,))
    return (render_rays(scene, rays(), integrator)[-1] for integrator in (march, dense))


# --- With room for everything


@pytest.mark.slow
@every_scene
def test_the_list_sees_what_the_dense_integrator_sees(make):
    listed, dense = pair(make())
    assert np.ptp(dense.alpha) > 0.1
    assert_same_picture(listed, dense)
    assert not np.any(listed.overflow)


@pytest.mark.slow
@every_scene
def test_gradients_through_the_list_are_the_dense_ones(make):
    """Of all leaves, the places of the volumes included."""
    target = jnp.asarray(np.random.default_rng(0).uniform(size=(20, 3)))

    @eqx.filter_jit
    def slopes(scene, integrator):
        def error(scene):
            seen = sg.render_rays(scene, rays(), integrator)[-1]
            return jnp.mean((seen.rgb - target) ** 2) + 0.1 * jnp.mean(seen.depth)

        return eqx.filter_grad(error)(scene)

    scene = make()
    dense = slopes(scene, sg.Hierarchical((CANDIDATES,)))
    listed = slopes(scene, OccupancyMarch(CANDIDATES, CANDIDATES))
    some = 0
    for a, b in zip(jax.tree.leaves(listed), jax.tree.leaves(dense), strict=True):
        assert_close(a, b, 1e-4, 1e-6)
        some += float(np.abs(b).max()) > 1e-4
    assert some > 8


def test_steps_are_of_the_length_that_is_asked_for():
    """Steps that are longer than need be end behind the volume, where nothing is."""
    scene, step = scene_of(fog=boxed([-0.5] * 3, [0.5] * 3, ConstantFog(1.5, (1, 0, 0)))), 0.3
    seen = render_rays(scene, rays(), OccupancyMarch(CANDIDATES, CANDIDATES, step))[-1]
    spans = jax.vmap(flatten(scene).span)(rays())
    speed = np.linalg.norm(rays().direction, axis=1)
    length = np.maximum(np.asarray(spans.far - spans.near), 0) * speed
    assert length.max() > 2 * step
    np.testing.assert_array_equal(seen.requested, np.ceil(length / step - 1e-6))
    assert_close(seen.alpha, -np.expm1(-1.5 * length), 0, 1e-5)


@pytest.mark.parametrize("step", [0.0, 0.05, 0.4])
def test_jittered_steps_reach_both_ends(step):
    """However far the first is moved."""
    scene = scene_of(fog=boxed([-0.9] * 3, [0.9] * 3, ConstantFog(1.5, (1, 0, 0))))
    march = OccupancyMarch(7, 7, step)
    exact = render_rays(scene, rays(), sg.Hierarchical((7,)))[-1].alpha
    for seed in range(3):
        seen = render_rays(scene, rays(), march, key=jax.random.key(seed))[-1]
        # Fog is the same everywhere in its box, so that the part of a step in it counts alone.
        assert_close(seen.alpha, exact, 0, 1e-5)


@pytest.mark.slow
def test_jitter_is_right_in_the_mean():
    """Of a blob that is narrower than a step."""
    blob = GaussianBlob([0.05, 0.0, 0.05], 0.05, 16.0, (0.9, 0.2, 0.1))
    scene = scene_of(blob=boxed([-1.0] * 3, [1.0] * 3, blob))
    march = OccupancyMarch(10, 10)
    truth = render_rays(scene, rays(), sg.Hierarchical((200,)))[-1].alpha
    keys = jax.random.split(jax.random.key(0), 100)
    each = jnp.stack([render_rays(scene, rays(), march, key=key)[-1].alpha for key in keys])
    assert np.abs(each - truth).max() > 0.02
    assert_close(each.mean(0), truth, 0, 0.002)


# --- With surfaces


@pytest.mark.slow
def test_surfaces_between_the_samples():
    ball = sg.Surface(sg.Sphere([0.1, 0.1, 0.0], 0.3), [0.9, 0.8, 0.1], 0.6)
    wall = sg.Surface(sg.Plane([0.0, 0.4, 0.0], [0.0, 1.0, 0.2]), [0.1, 0.8, 0.3], 0.5)
    scene = scene_of(ball=ball, wall=wall, **overlapping().root.children)
    surfaces = sg.Surfaces(3)
    joint = sg.Integrator(OccupancyMarch(CANDIDATES, CANDIDATES), surfaces)
    dense = sg.Integrator(sg.Hierarchical((CANDIDATES,)), surfaces)
    seen, expected = (render_rays(scene, rays(), x)[-1] for x in (joint, dense))
    assert_same_picture(seen, expected)
    assert joint.budget == CANDIDATES and dense.budget is None


@pytest.mark.slow
def test_layers_without_room_are_counted_too():
    """The march says of a ray how many of its layers and of its samples found no room."""
    sheets = {
        f"sheet{n}": sg.Surface(sg.Plane([0.0, y, 0.0], [0.0, 1.0, 0.0]), [0.9, 0.8, 0.1], 0.3)
        for n, y in enumerate((-0.3, 0.0, 0.3))
    }
    scene = scene_of(**sheets, **alone().root.children)
    joint = sg.Integrator(OccupancyMarch(CANDIDATES, CANDIDATES), sg.Surfaces(2))
    np.testing.assert_array_equal(render_rays(scene, rays(), joint)[-1].overflow, 1)
    little = dataclasses.replace(joint, media=joint.media.with_budget(4))
    (seen,) = render_rays(scene, rays(), little)
    np.testing.assert_array_equal(seen.overflow, 1 + without_room(seen.requested, 4 * 20))


# --- With too little room


def without_room(asked, room):
    """A naive count: a ray has room as long as all before it and itself need no more than all."""
    missing, total = [], 0
    for count in np.asarray(asked):
        total += int(count)
        missing.append(0 if total <= room else int(count))
    return np.array(missing)


def half_empty(seed=0):
    """Some cells are empty, so that rays ask for different numbers of samples."""
    cells = np.random.default_rng(seed).uniform(size=(4, 4, 4)) < 0.5
    return Occupancy.everywhere(4).without(jnp.asarray(cells))


@pytest.mark.slow
@pytest.mark.parametrize("key", [None, jax.random.key(3)], ids=["even", "jittered"])
@pytest.mark.parametrize("budget", [1, 2, 3])
def test_overflow_is_counted_ray_by_ray(budget, key):
    scene, full = alone(half_empty()), OccupancyMarch(CANDIDATES, CANDIDATES)
    whole = render_rays(scene, rays(), full, key=key)[-1]
    less = dataclasses.replace(full, budget=budget)
    seen = render_rays(scene, rays(), less, key=key)[-1]
    np.testing.assert_array_equal(seen.requested, whole.requested)
    missing = without_room(whole.requested, budget * 20)
    assert np.any(missing) and not np.all(missing[whole.requested > 0])
    np.testing.assert_array_equal(seen.overflow, missing)
    # Rays that have room do not notice; of the others nothing is seen, not half of it.
    kept = missing == 0
    np.testing.assert_array_equal(seen.rgb[kept], whole.rgb[kept])
    assert not np.any(seen.alpha[~kept])


def test_samples_that_fit_exactly_have_room():
    """All steps of rays through fog are asked; one less is too little for the last ray."""
    scene = scene_of(air=sg.Volume(ConstantFog(0.1, (1, 0, 0)), None))
    twice, one = OccupancyMarch(4, 4), jax.tree.map(lambda x: x[:1], rays())
    assert render_rays(scene, rays(), twice)[-1].overflow.sum() == 0
    assert render_rays(scene, one, twice)[-1].overflow.tolist() == [0]
    assert render_rays(scene, one, OccupancyMarch(4, 3))[-1].overflow.tolist() == [4]
    missing = render_rays(scene, rays(), OccupancyMarch(4, 3))[-1].overflow
    assert missing.tolist() == [0] * 15 + [4] * 5


@pytest.mark.slow
def test_asked_is_a_naive_count_of_occupied_middles():
    known = half_empty(1)
    scene = alone(known)
    spans = jax.vmap(flatten(scene).span)(rays())
    lower, upper = np.array([-0.8, -0.7, -0.6]), np.array([0.5, 0.6, 0.7])
    asked = []
    for origin, direction, near, far in zip(
        *map(np.asarray, (rays().origin, rays().direction, spans.near, spans.far)), strict=True
    ):
        t = near + (np.arange(CANDIDATES) + 0.5) / CANDIDATES * (far - near)
        cells = np.floor((origin + t[:, None] * direction - lower) / (upper - lower) * 4).astype(
            int
        )
        inside = known.thickness[tuple(np.clip(cells, 0, 3).T)] > known.threshold
        asked.append(int(np.sum(inside)) if far > near else 0)
    seen = render_rays(scene, rays(), OccupancyMarch(CANDIDATES, CANDIDATES))[-1]
    assert len(set(asked)) > 3
    # A middle on the face of a cell may fall on either side.
    assert np.abs(np.asarray(seen.requested) - asked).max() <= 1
    assert np.mean(np.asarray(seen.requested) == asked) > 0.8
    with_less = sg.render_rays(scene, rays(), OccupancyMarch(CANDIDATES, 1))[-1]
    np.testing.assert_array_equal(with_less.requested, seen.requested)


def test_skipping_what_is_empty_does_not_change_the_picture():
    """A fog that fills one cell of its bounds' eight: the others are known to be empty."""

    class Corner(sg.fields.AbstractField):
        """Fog where all coordinates are positive."""

        density_inside: jax.Array

        def __call__(self, gaussian, view, *, key=None):
            return Medium(self.density(gaussian), jnp.abs(view))

        def density(self, gaussian):
            return jnp.where(jnp.all(gaussian.mean > 0), self.density_inside, 0.0)

    field = Corner(jnp.asarray(3.0))
    empty = np.ones((2, 2, 2), bool)
    empty[1, 1, 1] = False
    known = Occupancy.everywhere(2).without(jnp.asarray(empty))
    box = [-0.8] * 3, [0.8] * 3
    march = OccupancyMarch(16, 16)
    seen = render_rays(scene_of(corner=boxed(*box, field, known)), rays(), march)[-1]
    expected = render_rays(scene_of(corner=boxed(*box, field)), rays(), march)[-1]
    assert seen.requested.sum() < 0.3 * expected.requested.sum() and np.any(seen.requested)
    assert 0.2 < expected.alpha.max()
    assert_same_picture(seen, expected, 1e-6)


# --- Budgets


def test_budget_that_is_impossible_is_refused():
    for budget in (0, 9):
        with pytest.raises(ValueError, match=f"`budget` must be between 1 .* 8; got {budget}"):
            OccupancyMarch(8, budget)
    assert OccupancyMarch(8, 2).with_budget(50).budget == 8


@pytest.mark.parametrize(
    "samples, budget", [(0.0, 4), (4.0, 4), (4.1, 5), (23.0, 24), (49.0, 56), (97, 100), (1e9, 100)]
)
def test_room_is_the_next_larger_of_a_few(samples, budget):
    march, dense = OccupancyMarch(100, 5, 0.1), sg.Hierarchical((3,))
    assert march.with_budget(samples) == OccupancyMarch(100, budget, 0.1)
    assert sg.Integrator(march).with_budget(samples).budget == budget
    assert dense.with_budget(samples) is dense
