"""Cones about rays never miss what a ray of theirs touches."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import scenegraph as sg
from scenegraph.lights._base import rays_to
from scenegraph.rays import Ray


SIZE = 32
AT = [0.0, -4.0, 1.0], [0.0, 0.0, 0.0], [0.0, 0.0, 1.0]
POSE = sg.Pose.look_at(*AT)
CAMERAS = {
    "perspective": sg.PerspectiveCamera.look_at(*AT, 0.7, SIZE, SIZE),
    "orthographic": sg.OrthographicCamera.look_at(*AT, 4.0, SIZE, SIZE),
    "fisheye": sg.FisheyeCamera(POSE, [10.0, 10.0], SIZE, SIZE, k1=0.1),
    "panorama": sg.PanoramaCamera(POSE, SIZE, SIZE),
    "rolling": sg.RollingShutter(
        sg.PerspectiveCamera.look_at(*AT, 0.7, SIZE, SIZE), [0.5, 0.3, -0.2, 0.1, 0.6, -0.2]
    ),
}


def tile(camera) -> Ray:
    """The rays of 8 x 8 neighbouring pixels, for every tile of the picture."""
    corner = np.stack(np.meshgrid(*[np.arange(SIZE // 8)] * 2), axis=-1).reshape(-1, 1, 2) * 8
    inside = np.stack(np.meshgrid(*[np.arange(8)] * 2), axis=-1).reshape(1, -1, 2) + 0.5
    pixels = jnp.asarray(corner + inside, jnp.float32)
    return jax.jit(jax.vmap(jax.vmap(camera.ray)))(pixels)


@pytest.mark.parametrize("name", CAMERAS)
def test_what_a_ray_touches_is_a_candidate(name):
    assert_conservative(tile(CAMERAS[name]))


def test_what_a_shadow_ray_touches_is_a_candidate():
    draw = np.random.default_rng(1)
    points = draw.uniform(-2, 2, (16, 1, 3)) + draw.uniform(-0.2, 0.2, (16, 64, 3))
    sides = draw.uniform(-0.02, 0.02, (16, 64, 2, 3))
    lamp = jnp.array([1.0, 1.0, 5.0])
    to_lamp = lambda point, sides: jax.tree.map(lambda x: x[0], rays_to(lamp, point, sides))
    to_lamps = jax.jit(jax.vmap(jax.vmap(to_lamp)))
    assert_conservative(to_lamps(jnp.asarray(points), jnp.asarray(sides)))


def test_long_footprints_are_held():
    """Points that are seen at a grazing angle: their shadow rays begin all over a long pixel."""
    draw = np.random.default_rng(2)
    points = draw.uniform(-2, 2, (400, 1, 3)) * [1.0, 1.0, 0.1]
    sides = draw.uniform(-0.5, 0.5, (400, 1, 2, 3)) * [1.0, 1.0, 0.02]
    lamp = jnp.array([3.0, 1.0, 1.0])
    to_lamp = lambda point, sides: jax.tree.map(lambda x: x[0], rays_to(lamp, point, sides))
    to_lamps = jax.jit(jax.vmap(jax.vmap(to_lamp)))
    assert_conservative(to_lamps(jnp.asarray(points), jnp.asarray(sides)), 2e-3)


@pytest.mark.parametrize("times", [0.5, 1.0, 3.0, 5.0, 7.0])
def test_footprints_wider_than_they_are_far_away_are_held(times):
    """A pixel at the horizon is many times as wide as it is away, and others are in its bundle."""
    draw = np.random.default_rng(3)
    points = draw.uniform(-2, 2, (100, 1, 3)) + draw.uniform(-0.2, 0.2, (100, 16, 3))
    sides = draw.uniform(-0.02, 0.02, (100, 16, 2, 3))
    points[:, 5], sides[:, 5] = [1e5, 0.0, 0.0], [[0.0, times * 1e5, 0.0], [0.0, 0.0, 0.0]]
    lamp = jnp.array([1.0, 1.0, 5.0])
    to_lamp = lambda point, sides: jax.tree.map(lambda x: x[0], rays_to(lamp, point, sides))
    to_lamps = jax.jit(jax.vmap(jax.vmap(to_lamp)))
    assert_conservative(to_lamps(jnp.asarray(points), jnp.asarray(sides)), 2e-3, narrow=False)


def assert_conservative(rays: Ray, least: float = 1e-3, narrow: bool = True):
    """Compares with the coverage of spheres, ray by ray; if narrow, some must be on no list.

    Where a pixel is many degrees wide, spheres behind the eye cover a little of it, up to `least`,
    because coverage is linear in the pixel; these are not meant.
    """
    draw = np.random.default_rng(0)
    centers, radii = draw.uniform(-3, 3, (100, 3)), 10 ** draw.uniform(-3, 0.5, 100)
    centers[0] = np.asarray(rays.origin[0, 0])
    balls = sg.transforms.Ball(jnp.asarray(centers), jnp.asarray(radii))
    used = jnp.ones(rays.near.shape, bool)

    @jax.jit
    def both(rays):
        bundles = jax.vmap(sg.visibility.bound_rays)(rays, used)
        over_balls = jax.vmap(sg.visibility.may_touch, (None, 0))
        cover = lambda ray, ball: sg.Sphere(ball.center, ball.radius).coverage(ray)
        covered = jax.vmap(jax.vmap(jax.vmap(cover, (None, 0)), (0, None)), (0, None))(rays, balls)
        return jax.vmap(over_balls, (0, None))(bundles, balls), jnp.any(covered > least, axis=1)

    listed, touched = map(np.asarray, both(rays))
    assert not np.any(touched & ~listed)
    assert touched.any()
    if not narrow:
        return
    assert listed.sum() < 0.7 * listed.size
    assert listed.sum() < 3 * touched.sum() + listed.shape[0]


def test_balls_that_are_not_finite_are_candidates():
    rays = jax.tree.map(lambda x: x[5], tile(CAMERAS["perspective"]))
    bundle = jax.jit(sg.visibility.bound_rays)(rays, jnp.ones(64, bool))
    may_touch = jax.jit(sg.visibility.may_touch)
    for center, radius in [([np.nan, 0, 0], 1.0), ([0, 9, 0], np.nan), ([0, -90, 0], np.inf)]:
        ball = sg.transforms.Ball(jnp.asarray(center, float), jnp.asarray(radius))
        assert may_touch(bundle, ball)
    behind = sg.transforms.Ball(jnp.array([0.0, -90.0, 0.0]), jnp.array(1.0))
    assert not may_touch(bundle, behind)


@pytest.mark.parametrize("count", [70, 513, 1000])
def test_lists_hold_the_candidates_in_order(count):
    """Also of more things than are tested one by one, some of them everywhere or nowhere."""
    rays = tile(CAMERAS["perspective"])
    used = jnp.ones(rays.near.shape[0], bool).at[3].set(False)
    draw = np.random.default_rng(2)
    radii = draw.uniform(0.01, 0.3, count)
    radii[[5, 40, 69]] = np.inf, np.nan, 0.0
    centers = jnp.asarray(draw.uniform(-1, 1, (count, 3)))

    @jax.jit
    def both(centers, rays, used):
        order = sg.visibility.order_by_place(centers, jnp.ones(count, bool))
        balls = sg.transforms.Ball(centers[order], jnp.asarray(radii))
        bundles = jax.vmap(sg.visibility.bound_rays)(rays, jnp.ones(rays.near.shape, bool))
        touch = jax.vmap(jax.vmap(sg.visibility.may_touch, (None, 0)), (0, None))(bundles, balls)
        return sg.visibility.list_candidates(bundles, balls, used), touch

    lists, touch = both(centers, rays, used)
    used, nth = np.asarray(used), eqx.filter_jit(lambda lists, n: lists.nth(n))
    expected = [np.flatnonzero(row) for row in np.asarray(touch) & used[:, None]]
    assert lists.lengths.tolist() == [len(row) for row in expected]
    assert max(lists.lengths) > 3 and lists.lengths[3] == 0
    for n in range(int(max(lists.lengths))):
        found = nth(lists, jnp.asarray(n))
        for row, number in zip(expected, found.tolist(), strict=True):
            assert len(row) <= n or number == row[n]


def test_points_in_order_are_near_to_each_other():
    draw = np.random.default_rng(3)
    points = jnp.asarray(draw.uniform(-1, 1, (512, 3)))
    used = jnp.arange(512) % 7 > 0
    order = np.asarray(jax.jit(sg.visibility.order_by_place)(points, used))
    assert sorted(order) == list(range(512))
    assert np.all(np.diff(np.asarray(used)[order].astype(int)) <= 0)
    steps = lambda order: np.linalg.norm(np.diff(np.asarray(points)[order], axis=0), axis=1).mean()
    assert steps(order[: int(used.sum())]) < 0.3 * steps(np.arange(512))
