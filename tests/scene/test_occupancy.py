"""Where a volume may hold anything, and looking again."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import scenegraph as sg
from scenegraph.fields import AbstractField, ConstantFog
from scenegraph.flat import flatten
from scenegraph.numerics import Frozen
from scenegraph.rays import Medium, Span
from scenegraph.scene import has_occupancy, Occupancy, refresh_occupancy
from support.helpers import assert_close


LOWER, UPPER = np.array([-1.0, -0.5, 0.0]), np.array([1.0, 1.5, 3.0])
refresh = eqx.filter_jit(refresh_occupancy)


class Ball(AbstractField):
    """A ball with a hard edge; a smooth one would have no cell that is empty for sure."""

    center: jax.Array
    radius: jax.Array
    extinction: jax.Array

    def __call__(self, gaussian, view, *, key=None):
        return Medium(self.density(gaussian), jnp.abs(view))

    def density(self, gaussian):
        away = jnp.sum((gaussian.mean - self.center) ** 2)
        return jnp.where(away < self.radius**2, self.extinction, 0.0)


def ball(center=(0.2, 0.4, 1.1), radius=0.6):
    return Ball(jnp.asarray(center), jnp.asarray(radius), jnp.asarray(5.0))


def volume(field, occupancy):
    return sg.Volume(field, sg.Box(LOWER, UPPER), occupancy=occupancy)


def scene_of(field, occupancy):
    return sg.Scene(sg.Group(thing=volume(field, occupancy)), background=(1.0, 1.0, 1.0))


def thickness_of(scene, name="thing"):
    return np.asarray(sg.scene.thaw(scene).root.children[name].occupancy.thickness)


def refreshed(scene, times, seed=0):
    for key in jax.random.split(jax.random.key(seed), times):
        scene = refresh(scene, key=key)
    return scene


# --- What is known


def test_a_place_has_the_thickness_of_its_cell():
    """Naively: the cell whose faces the place lies between; outside, the nearest."""
    rng = np.random.default_rng(0)
    thickness = rng.uniform(-1, 1, size=(2, 3, 5))
    known = Occupancy(thickness, 0.1)
    for place in rng.uniform(-0.1, 1.1, size=(60, 3)):
        x, y, z = np.clip(np.floor(place * (2, 3, 5)).astype(int), 0, (1, 2, 4))
        assert bool(known.at(jnp.asarray(place))) == (thickness[x, y, z] > 0.1)


def test_nothing_is_skipped_at_first():
    known = Occupancy.everywhere(3, 0.2)
    assert known.thickness.shape == (3, 3, 3) and known.threshold == 0.2
    assert all(known.at(jnp.asarray(p)) for p in np.random.default_rng(0).uniform(size=(9, 3)))


def test_empty_cells_are_skipped_and_no_others():
    empty = np.random.default_rng(0).uniform(size=(3, 3, 3)) < 0.5
    known = Occupancy.everywhere(3).without(jnp.asarray(empty))
    middles = (np.indices((3, 3, 3)).reshape(3, -1).T + 0.5) / 3
    seen = [bool(known.at(jnp.asarray(middle))) for middle in middles]
    assert seen == (~empty).reshape(-1).tolist()
    twice = known.without(jnp.asarray(~empty))
    assert not np.any(np.asarray(twice.thickness) > 0)


def test_occupancy_needs_bounds():
    with pytest.raises(ValueError, match="`bounds`, which are missing"):
        sg.Volume(ball(), None, occupancy=Occupancy.everywhere(2))


def test_occupancy_is_frozen():
    names = [
        (path, frozen)
        for path, _, frozen in sg.scene.named_leaves(scene_of(ball(), Occupancy.everywhere(2)))
        if "occupancy" in path
    ]
    assert names == [("thing.occupancy.thickness", True)]
    assert has_occupancy(volume(ball(), Occupancy.everywhere(2)))
    assert not has_occupancy(volume(ball(), None)) and not has_occupancy(ball())


# --- Along a ray


def ray(origin, direction):
    return sg.rays.Ray.from_radius(
        *map(jnp.asarray, (origin, direction, direction)), *map(jnp.asarray, (0.001, 0.0, 9.0))
    )


def test_parts_of_a_ray_are_asked_in_the_frame_of_the_volume():
    """Through two cells along `x`, of which the second is empty; twice as large, from further."""
    empty = np.zeros((2, 1, 1), bool)
    empty[1] = True
    node = volume(ball(), Occupancy(jnp.ones((2, 1, 1))).without(jnp.asarray(empty)))
    along = ray([-3.0, 0.2, 1.0], [1.0, 0.0, 0.0])
    parts = [(1.0, 1.8), (1.9, 2.5), (2.5, 2.9), (3.1, 3.5), (3.9, 4.3), (4.1, 4.5)]
    expected = [False, True, True, False, False, False]

    def occupied(node, ray, *part):
        return bool(flatten(sg.Scene(node)).occupied(ray, Span(*part)))

    assert [occupied(node, along, *part) for part in parts] == expected
    larger = sg.Transformed(node, sg.Similarity([5.0, 0.0, 0.0], scale=2.0))
    away = ray([-1.0, 0.4, 2.0], [2.0, 0.0, 0.0])
    assert [occupied(larger, away, *part) for part in parts] == expected
    # A group is occupied where any of its media are; what has no occupancy is, in its bounds.
    unknown = volume(ball(), None)
    group = sg.Group(a=node, b=unknown)
    both = [False, True, True, True, True, False]
    assert [occupied(group, along, *part) for part in parts] == both
    assert [occupied(unknown, along, *part) for part in parts] == both
    assert not occupied(sg.Group(), along, 1.0, 2.0)
    everywhere = sg.Volume(ConstantFog(1.0, (1, 0, 0)), None)
    assert occupied(everywhere, along, 8.0, 8.5)


# --- Looking again


def test_a_ball_is_found():
    """Cells inside the ball stay; cells outside of it thin out."""
    resolution = 8
    scene = refreshed(scene_of(ball(), Occupancy.everywhere(resolution)), 8 * 40)
    cell = (UPPER - LOWER) / resolution
    corners = np.indices((resolution,) * 3).reshape(3, -1).T * cell + LOWER
    offsets = np.stack(np.meshgrid(*[[0, 1]] * 3, indexing="ij"), -1).reshape(-1, 3) * cell
    center = np.array([0.2, 0.4, 1.1])
    away = np.linalg.norm(corners[:, None] + offsets - center, axis=2)
    nearest = np.clip(center, corners, corners + cell)
    outside = np.linalg.norm(nearest - center, axis=1) > 0.6
    seen = thickness_of(scene).reshape(-1)
    inside = np.all(away < 0.6, axis=1)
    assert inside.sum() > 5 and outside.sum() > 300
    assert_close(seen[inside], np.full(inside.sum(), 5.0 * cell.max()), 1e-5)
    assert np.all(seen[outside] < 0.03)
    # Nothing between is denser than the ball, or forgotten while it is mostly in the ball.
    assert np.all(seen <= 5.0 * cell.max() * (1 + 1e-5))
    mostly = (away < 0.6).sum(1) >= 7
    assert np.all(seen[mostly] > 0.03)


def test_the_larger_of_nine_tenths_and_what_is_seen():
    """In fog: each look at a cell takes a tenth of it, until the fog is all that is left."""
    fog, edge = ConstantFog(0.2, (1, 0, 0)), 1.0 / 2
    old = np.random.default_rng(0).uniform(0.05, 0.4, size=(2, 2, 2))
    box = sg.Box([0.0] * 3, [1.0, 0.5, 0.8])
    node = sg.Volume(fog, box, occupancy=Occupancy(old))
    for count in range(1, 30):
        node = refresh(node, key=jax.random.key(count))
    seen = np.asarray(sg.scene.thaw(node).occupancy.thickness)
    # Of eight cells one is asked a time; a look does not fall below the fog.
    looks = np.log(np.maximum(seen, 1e-9) / old) / np.log(0.9)
    settled = np.isclose(seen, 0.2 * edge, rtol=1e-5)
    assert np.all(settled | (np.abs(looks - np.round(looks)) < 1e-3))
    assert np.any(settled) and np.any(~settled)
    assert np.round(looks[~settled]).sum() <= 29


def test_one_look_at_one_of_eight_cells():
    scene = scene_of(ConstantFog(0.1, (1, 0, 0)), Occupancy.everywhere(4))
    before, after = thickness_of(scene), thickness_of(refreshed(scene, 1))
    changed = before != after
    assert changed.sum() == 8
    # The longest edge of a cell is a quarter of 3.
    assert_close(after[changed], np.full(8, max(0.1 * 0.75, 0.9 * 0.3)), 1e-6)
    dense = scene_of(ConstantFog(4.0, (1, 0, 0)), Occupancy.everywhere(4))
    seen = thickness_of(refreshed(dense, 1))
    assert_close(seen[seen != before], np.full(8, 4.0 * 0.75), 1e-6)


def test_all_cells_get_their_turn():
    scene = scene_of(ConstantFog(4.0, (1, 0, 0)), Occupancy.everywhere(4))
    assert_close(thickness_of(refreshed(scene, 60)), np.full((4, 4, 4), 3.0), 1e-6)


def test_cells_where_never_is_anything_stay_empty():
    """However dense the field is there; all looks go to the others."""
    empty = np.random.default_rng(0).uniform(size=(4, 4, 4)) < 0.8
    known = Occupancy.everywhere(4).without(jnp.asarray(empty))
    seen = thickness_of(refreshed(scene_of(ConstantFog(4.0, (1, 0, 0)), known), 12))
    np.testing.assert_array_equal(seen[empty], -1)
    assert_close(seen[~empty], np.full((~empty).sum(), 3.0), 1e-6)
    nothing = known.without(jnp.ones((4, 4, 4), bool))
    seen = thickness_of(refreshed(scene_of(ConstantFog(4.0, (1, 0, 0)), nothing), 2))
    np.testing.assert_array_equal(seen, -1)


def test_cells_that_have_thinned_out_may_come_back():
    """Only what never holds anything is never asked."""
    thin = Occupancy(jnp.zeros((4, 4, 4)))
    scene = refreshed(scene_of(ConstantFog(4.0, (1, 0, 0)), thin), 60)
    assert np.all(thickness_of(scene) > 0.03)


def test_looking_is_a_pure_function_of_the_key():
    scene = refreshed(scene_of(ball(), Occupancy.everywhere(4)), 9)
    one, same, other = (thickness_of(refreshed(scene, 3, seed)) for seed in (1, 1, 2))
    np.testing.assert_array_equal(one, same)
    assert not np.array_equal(one, other)


def test_only_occupancies_change():
    """Bit for bit; frozen volumes are left alone, and moved ones are asked in their own frame.

    A volume all of whose leaves are frozen, one by one, learns where it is empty nonetheless.
    """
    known, fog = Occupancy.everywhere(2), ConstantFog(0.1, (1, 0, 0))
    scene = sg.Scene(
        sg.Group(
            free=volume(ball(), known),
            still=Frozen(volume(fog, known)),
            held=sg.freeze(volume(fog, known)),
            moved=sg.Transformed(volume(fog, known), sg.Similarity(scale=5.0)),
            plain=volume(fog, None),
        ),
        background=(1.0, 1.0, 1.0),
    )
    scene = sg.freeze(scene, "free.bounds")
    seen = refresh(scene, key=jax.random.key(0))
    assert jax.tree.structure(seen) == jax.tree.structure(scene)
    after = {path: np.asarray(leaf) for path, leaf, _ in sg.scene.named_leaves(seen)}
    changed = {
        path
        for path, leaf, _ in sg.scene.named_leaves(scene)
        if not np.array_equal(after[path], leaf)
    }
    assert changed == {f"{name}.occupancy.thickness" for name in ("free", "moved", "held")}
    moved = after["moved.occupancy.thickness"]
    assert_close(np.sort(moved.reshape(-1))[0], 0.27, 1e-5)


def test_thawed_scenes_can_be_looked_at_too():
    scene = sg.scene.thaw(scene_of(ConstantFog(4.0, (1, 0, 0)), Occupancy.everywhere(2)))
    seen = refresh(scene, key=jax.random.key(0))
    assert np.any(thickness_of(seen) != thickness_of(scene))
