"""Where rays meet a box, with numbers worked out by hand."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import scenegraph as sg
import support.hard_surfaces as hard
from scenegraph.rays import Ray
from support.helpers import assert_close, assert_finite_gradients, assert_gradients


BOX = sg.Box([-1, -2, -3], [1, 2, 3])
CASES = {  # origin, direction, (near, far) before the ray's own 0.5 to 10
    "through": ([-4, 0.2, 0.3], [2, 0, 0], (1.5, 2.5)),
    "backwards": ([4, 0.2, 0.3], [-2, 0, 0], (1.5, 2.5)),
    "slanted": ([-3, -2.5, 0], [2, 1, 0.5], (1, 2)),
    "parallel to one face": ([-3, 0, 0], [1, 1, 0], (2, 2)),
    "inside": ([0, 0, 0], [0, 0, 1], (0.5, 3)),
    "behind": ([4, 0, 0], [1, 0, 0], (0.5, 0.5)),
    "beside": ([-4, 2.5, 0], [1, 0, 0], (0.5, 0.5)),
    "on a face, along it": ([-4, 2, 0], [1, 0, 0], (0.5, 0.5)),
    "past a corner": ([-3, -2.5, 0], [1, 3, 0], (0.5, 0.5)),
    "too far": ([-40, 0, 0], [1, 0, 0], (0.5, 0.5)),
    "cut at both ends": ([0, 0, -30], [0, 0, 10], (2.7, 3.3)),
    "nowhere to go": ([0, 0, 0], [0, 0, 0], (0.5, 10)),
}


def ray(origin, direction, near=0.5, far=10.0):
    origin, direction = jnp.asarray(origin, float), jnp.asarray(direction, float)
    return Ray(origin, direction, direction, jnp.zeros((2, 3)), jnp.zeros((2, 3)), near, far)


@jax.jit
def span_of(ray):
    return BOX.span(ray)


@pytest.mark.parametrize("name", CASES)
def test_span(name):
    origin, direction, expected = CASES[name]
    span = span_of(ray(origin, direction))
    if expected[0] == expected[1]:  # empty
        expected = (0.5, 0.5)
    assert_close([span.near, span.far], expected, 1e-6)


@pytest.mark.parametrize("seed", range(3))
def test_span_against_points(seed):
    """Points of the ray lie in the box exactly where the span says."""
    rng = np.random.default_rng(seed)
    origins, directions = 4 * rng.normal(size=(200, 3)), rng.normal(size=(200, 3))
    directions[:100] -= origins[:100]
    rays = jax.vmap(lambda o, d: ray(o, d, 0.0, 5.0))
    both = jax.jit(lambda *lines: (rays(*lines), jax.vmap(BOX.span)(rays(*lines))))
    rays, spans = jax.tree.map(np.asarray, both(jnp.asarray(origins), jnp.asarray(directions)))
    t = np.linspace(0, 5, 501)[:, None]
    points = rays.origin + t[..., None] * rays.direction
    inside = np.all((points > BOX.lower) & (points < BOX.upper), axis=-1)
    said = (t > spans.near) & (t < spans.far)
    border = np.minimum(abs(t - spans.near), abs(t - spans.far)) < 1e-4
    np.testing.assert_array_equal(said[~border], inside[~border])
    assert 30 < np.sum(np.any(inside, axis=0)) < 170


@pytest.mark.parametrize("name", CASES)
def test_gradients_are_finite(name):
    assert_finite_gradients(lambda box, ray: box.span(ray), BOX, ray(*CASES[name][:2]))


@pytest.mark.parametrize("tiny", [1e-10, 1e-20, 1e-30])
def test_gradients_are_finite_for_rays_almost_parallel_to_a_face(tiny):
    almost = ray([-4, 0.2, 0.3], [2, tiny, 0])
    assert_close(span_of(almost).far, 2.5)
    assert_finite_gradients(lambda box, ray: box.span(ray), BOX, almost)


def test_gradients_of_a_ray_along_x():
    def near(box, ray):
        return box.span(ray).near

    box, by_ray = jax.jit(jax.grad(near, (0, 1)))(BOX, ray([-4, 0.2, 0.3], [2, 0, 0]))
    assert_close(box.lower, [0.5, 0, 0])
    assert_close(box.upper, [0, 0, 0])
    assert_close(by_ray.origin, [-0.5, 0, 0])
    assert_close(by_ray.direction, [-0.75, 0, 0])
    assert (float(by_ray.near), float(by_ray.far)) == (0, 0)


@pytest.mark.parametrize("name", ["slanted", "inside"])
def test_gradients(name, x64):
    box = jax.tree.map(lambda x: jnp.asarray(x, jnp.float64), BOX)
    one = jax.tree.map(lambda x: jnp.asarray(x, jnp.float64), ray(*CASES[name][:2]))
    direction = one.direction + jnp.array([0.01, 0.02, 0.03])

    def span(box, origin, direction):
        return box.span(ray(origin, direction))

    assert_gradients(span, box, one.origin, direction)


def test_a_box_is_not_seen_where_it_is_not():
    """Pixels so wide that a direction changes its sign within one: none sees what is behind it."""
    camera = sg.PanoramaCamera(sg.Pose.look_at([0, -3, 1.5], [0, 0, 0.4], [0, 0, 1]), 20, 12)
    pixels = np.stack(np.meshgrid(np.arange(20), np.arange(12)), -1).reshape(-1, 2) + 0.5
    box = sg.Box([-0.2, -0.2, -0.2], [0.2, 0.1, 0.3])

    @jax.jit
    def cover(pixels):
        rays, own = jax.vmap(camera.ray)(pixels), jnp.asarray(-1)
        (stack,) = sg.flat.flatten(sg.Scene(sg.Surface(box, "white"))).occluders
        one = lambda ray: stack.map(lambda x: sg.flat.occlusion(x, ray, own))[0]
        return rays, jax.vmap(one)(rays)

    rays, covered = jax.tree.map(np.asarray, cover(jnp.asarray(pixels, jnp.float32)))
    middle = np.array([0.0, -0.05, 0.05]) - rays.origin
    along = np.sum(middle * rays.direction, 1) / np.linalg.norm(rays.direction, axis=1)
    behind = along < -1
    assert np.sum(behind) > 50
    np.testing.assert_array_equal(np.where(behind, covered, 0), 0)
    assert np.max(covered) > 0.01


@pytest.mark.parametrize("inside", [False, True])
def test_the_outline_covers_what_the_faces_cover(inside, x64):
    """Their sum, and its derivative, where no face is seen from its edge within the pixel."""
    rng, box = np.random.default_rng(0), sg.Box([-0.4, -0.5, -0.3], [0.5, 0.4, 0.6])
    eyes = rng.uniform(-0.25, 0.35, (60, 3)) if inside else rng.normal(size=(60, 3)) * 2
    eyes = eyes if inside else eyes[np.max(np.abs(eyes), axis=1) > 0.8]

    def through(eye, seed):
        camera = sg.PerspectiveCamera.look_at(eye, [0.05, 0.0, 0.1], [0.1, 0.2, 1.0], 0.7, 8, 8)
        return camera.ray(8 * jax.random.uniform(jax.random.key(seed), (2,)))

    def by_faces(box, ray):
        return jnp.sum(box.parts(ray).coverage)

    rays = jax.jit(jax.vmap(through))(jnp.asarray(eyes), jnp.arange(len(eyes)))
    changes = np.sum(np.abs(rays.d_direction), axis=1) / 2
    askew = np.flatnonzero(np.all(np.abs(rays.direction) > changes, axis=1))
    assert len(askew) > 30
    rays = jax.tree.map(lambda x: jnp.asarray(np.asarray(x)[askew]), rays)
    results = [
        jax.jit(jax.vmap(jax.value_and_grad(covered), (None, 0)))(box, rays)
        for covered in (lambda box, ray: box.coverage(ray), by_faces)
    ]
    (whole, whole_slopes), (parts, parts_slopes) = results
    assert_close(whole, parts, 0, 1e-9)
    if inside:
        assert_close(whole, np.ones(len(whole)), 0, 1e-9)
        return
    partly = np.sum((np.asarray(whole) > 0.01) & (np.asarray(whole) < 0.99))
    assert partly > 5 and np.sum(np.asarray(whole) > 0.99) > 3
    assert_close(whole_slopes.lower, parts_slopes.lower, 0, 1e-7)
    assert_close(whole_slopes.upper, parts_slopes.upper, 0, 1e-7)


# --- Boxes seen along their faces

THIN = ([-0.02, -0.3, -0.25], [0.02, 0.3, 0.35])
WIDE = ([-0.3, -0.3, -0.25], [0.25, 0.3, 0.35])
EYES = {
    "beside a face's plane": (WIDE, [0.3, -4.0, 1.0]),
    "behind it": (WIDE, [0.2, -4.0, 1.0]),
    "in it": (WIDE, [0.25, -4.0, 1.0]),
    "straight ahead of a slab in a pixel": (THIN, [0.004, -4.0, 0.06]),
    "above it": (THIN, [0.004, -4.0, 1.0]),
    "along an edge": (WIDE, [0.27, -4.0, 0.37]),
}


def shares_of_lines(bounds, rays, lines=128):
    """The shares of pixels in which lines first meet the faces along each axis, in numpy."""
    at = (np.arange(lines) + 0.5) / lines - 0.5
    offsets = np.stack(np.meshgrid(at, at, indexing="ij"), -1).reshape(-1, 2)
    directions = np.asarray(rays.direction, float)[:, None]
    directions = directions + offsets @ np.asarray(rays.d_direction, float)
    low, high = ((np.asarray(x) - np.asarray(rays.origin)[:, None]) / directions for x in bounds)
    enters, leaves = np.minimum(low, high), np.maximum(low, high)
    met = np.max(enters, -1) < np.min(leaves, -1)
    first = np.argmax(enters, -1)
    return np.stack([np.mean(met & (first == axis), 1) for axis in range(3)], 1)


@pytest.mark.parametrize("name", EYES)
def test_faces_seen_along_their_planes(name):
    """A pixel's middle may look past a face, along its other side, where other lines meet it."""
    bounds, eye = EYES[name]
    camera = sg.PerspectiveCamera.look_at(eye, [0.0, 0.0, 0.1], [0, 0, 1], 0.4, 24, 18)
    rays, box = sg.data.pixel_rays(camera), sg.Box(*bounds)
    hits, outline = jax.jit(jax.vmap(lambda ray: (box.parts(ray), box.coverage(ray))))(rays)
    expected = shares_of_lines(bounds, rays)
    narrow = (expected > 0) & (expected < 0.2)
    assert np.any(narrow)
    assert_close(hits.coverage, expected, 0, 4e-3)
    assert_close(outline, expected.sum(1), 0, 4e-3)
    # What is shaded is on the face, and on the side that the eye sees.
    seen = np.asarray(hits.coverage) > 0
    points, normals = np.asarray(hits.point)[seen], np.asarray(hits.normal)[seen]
    assert np.all((points >= box.lower - 1e-5) & (points <= box.upper + 1e-5))
    assert np.all(np.sum(normals * (points - np.asarray(eye)), -1) <= 1e-5)


def test_narrow_lit_face_against_lines():
    """A sliver of a bright face beside a dark one, less than a pixel wide."""
    lower, upper = WIDE
    eye, target, lamp = [0.3, -4.0, 1.0], [0.0, 0.0, 0.1], [2.0, -1.5, 1.5]
    camera = sg.PerspectiveCamera.look_at(eye, target, [0, 0, 1], 0.4, 24, 18)
    white = sg.Lambert(sg.Constant([1.0, 1.0, 1.0]))
    light = sg.PointLight(lamp, [10.0, 10.0, 10.0])
    scene = sg.Scene(sg.Group(box=sg.Surface(sg.Box(lower, upper), white), light=light))
    rays = sg.data.pixel_rays(camera)
    at = (np.arange(64) + 0.5) / 64 - 0.5
    offsets = np.stack(np.meshgrid(at, at, indexing="ij"), -1).reshape(-1, 2)
    lines = np.asarray(rays.direction, float)[:, None] + offsets @ np.asarray(rays.d_direction)
    thing = hard.Thing(hard.Box(lower, upper), [1.0, 1.0, 1.0], lit=True)
    flat = np.moveaxis(lines, -1, 0).reshape(3, -1)
    seen = hard.look_along([thing], hard.column(eye), flat, hard.Lamp(lamp, [10.0] * 3), [0.0] * 3)
    expected = seen[0].reshape(18, 24, -1).mean(-1)
    found = np.asarray(sg.render(scene, camera).rgb)[..., 0]
    assert np.sqrt(np.mean((found - expected) ** 2)) < 2e-3
    assert np.max(np.abs(found - expected)) < 0.02


def test_shadow_at_the_foot_of_boxes_against_lines():
    """Shadow rays start from all over a footprint, on both sides of the planes of faces."""
    sun, eye, target = np.array([0.5, -0.6, 1.0]), [-0.58, -2.2, 0.6], [-0.58, 2.0, 0.6]
    boxes = [([0.6, y - 0.35, 0.0], [1.4, y + 0.35, 0.8 + 0.3 * y]) for y in range(4)]
    camera = sg.PerspectiveCamera.look_at(eye, target, [0, 0, 1], 0.9, 64, 48)
    white = sg.Lambert(sg.Constant([1.0, 1.0, 1.0]))
    nodes = {f"box{i}": sg.Surface(sg.Box(*x), white) for i, x in enumerate(boxes)}
    # A lamp so far away that it is a sun: of irradiance one on what it shines on straight.
    lamp, power = 1e3 * sun, [1e6 * float(sun @ sun)] * 3
    floor, light = sg.Surface(sg.Plane(), white), sg.DirectionalLight(-sun, [1.0] * 3)
    scene = sg.Scene(sg.Group(floor=floor, **nodes, light=light))
    rays = sg.data.pixel_rays(camera)
    at = (np.arange(16) + 0.5) / 16 - 0.5
    offsets = np.stack(np.meshgrid(at, at, indexing="ij"), -1).reshape(-1, 2)
    lines = np.asarray(rays.direction, float)[:, None] + offsets @ np.asarray(rays.d_direction)
    shapes = [hard.Plane([0.0] * 3), *(hard.Box(*x) for x in boxes)]
    things = [hard.Thing(x, [1.0] * 3, lit=True) for x in shapes]
    flat = np.moveaxis(lines, -1, 0).reshape(3, -1)
    seen = hard.look_along(things, hard.column(eye), flat, hard.Lamp(lamp, power), [0.0] * 3)
    expected = seen[0].reshape(48, 64, -1).mean(-1)
    found = np.asarray(sg.render(scene, camera).rgb)[..., 0]
    dark = expected < 1e-3
    assert dark.sum() > 1000 and found[dark].max() < 0.13
    assert np.sqrt(np.mean((found - expected) ** 2)) < 0.01


def test_footprints_are_those_of_the_plane_of_a_face_cut_off_at_its_edges():
    """A pixel that sees a face from aside reaches far beyond it in its plane."""
    draw = np.random.default_rng(5)
    ways = draw.normal(size=(400, 3))
    ways[:200, 2] *= 0.01  # along the upper and the lower face
    starts = draw.uniform(-1, 1, (400, 3)) * [1, 2, 3] - 8 * ways
    wide = draw.normal(size=(400, 2, 3)) * 0.02

    @jax.jit
    @jax.vmap
    def both(origin, direction, side):
        one = Ray(origin, direction, direction, jnp.zeros((2, 3)), side, 0.1, 100.0)
        return BOX.parts(one), one

    hits, rays = jax.tree.map(np.asarray, both(*map(jnp.asarray, (starts, ways, wide))))
    seen = hits.coverage > 1e-3
    reach = np.sum(np.abs(hits.d_point), axis=2) / 2
    axes = np.eye(3, dtype=bool)[None]
    outside = np.abs(hits.point) + reach - np.array([1.0, 2.0, 3.0])
    assert np.max(np.where(axes, -1, outside)[seen]) < 1e-5

    # On the plane x_i = c, the point moves by dp = t dd - (t dd_i / d_i) d.
    with np.errstate(divide="ignore", invalid="ignore"):
        t = (hits.point - rays.origin[:, None])[:, axes[0]] / rays.direction
        steps = t[..., None, None] * rays.d_direction[:, None]
        across = np.einsum("rikj,ij->rik", steps, axes[0]) / rays.direction[..., None]
        plane = steps - across[..., None] * rays.direction[:, None, None]
    inside = np.abs(hits.point) + np.sum(np.abs(plane), axis=2) / 2 < [1.0, 2.0, 3.0]
    whole = seen & np.all(inside | axes, axis=2)
    cut = seen & ~whole
    assert whole.sum() > 50 and cut.sum() > 50
    assert_close(hits.d_point[whole], plane[whole], 1e-4)
    assert np.all(np.abs(hits.d_point[cut]) <= np.abs(plane[cut]) * (1 + 1e-3) + 1e-5)
