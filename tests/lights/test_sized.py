"""Lamps with a size: light in closed form, soft shadows, and what is seen of them."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import scenegraph as sg
from support.helpers import assert_close


SQUARE = np.array([[-0.4, -0.3, 2.0], [0.4, -0.3, 2.0], [0.4, 0.3, 2.0], [-0.4, 0.3, 2.0]])
LAMPS = {
    "rectangle": sg.RectangleLight([0.1, 0.2, 1.5], [0.5, 0.1, 0.2], [-0.1, 0.4, 0.0], [2.0] * 3),
    "disk": sg.DiskLight([0.1, 0.2, 1.5], [0.3, -0.2, -1.0], 0.5, [2.0] * 3),
    "sphere": sg.SphereLight([0.1, 0.2, 1.5], 0.5, [2.0] * 3),
    "mesh": sg.MeshLight(SQUARE, [[0, 1, 2], [0, 2, 3]], [2.0] * 3),
}
BLACK = {"background": [0.0, 0.0, 0.0]}


def irradiance_at(lamp, point, normal):
    """What a white Lambert surface shows at a point, times pi."""
    normal = np.asarray(normal) / np.linalg.norm(normal)
    surface = sg.Surface(sg.Plane(point, normal), sg.Lambert([1.0] * 3))
    scene = sg.Scene(sg.Group(lamp=lamp, surface=surface), **BLACK)
    # A ray from just above the point, so that nothing is in front of it.
    eye = np.asarray(point) + 1e-2 * normal
    rays = sg.rays.Ray(
        eye[None], -normal[None], -normal[None], *jnp.zeros((2, 1, 2, 3)), [0.0], [1.0]
    )
    return np.pi * float(sg.render_rays(scene, rays)[-1].rgb[0, 0])


def sampled_irradiance(lamp, point, normal, count=200):
    """The mean over a grid of random numbers of what a lamp's points send."""
    normal = np.asarray(normal) / np.linalg.norm(normal)
    grid = (np.stack(np.meshgrid(*[np.arange(count)] * 2), -1).reshape(-1, 2) + 0.5) / count
    at = lambda uniform: lamp.sample_point(jnp.asarray(point), uniform)
    points = jax.jit(jax.vmap(at))(jnp.asarray(grid))
    away = np.asarray(points.position) - point
    cosine = (away / np.linalg.norm(away, axis=1, keepdims=True)) @ normal
    return np.mean(np.asarray(points.radiance)[:, 0] * np.maximum(cosine, 0) / points.density)


def test_parallel_rectangle_is_the_form_factor():
    # From a point below one corner of a rectangle a x b at the height c: Howell, configuration B-3.
    a, b, c = 0.8, 0.6, 2.0
    x, y = a / c, b / c
    factor = (
        x / np.sqrt(1 + x**2) * np.arctan(y / np.sqrt(1 + x**2))
        + y / np.sqrt(1 + y**2) * np.arctan(x / np.sqrt(1 + y**2))
    ) / (2 * np.pi)
    lamp = sg.RectangleLight([a / 2, b / 2, c], [a / 2, 0, 0], [0, b / 2, 0], [3.0] * 3)
    assert_close(irradiance_at(lamp, [0.0, 0, 0], [0.0, 0, 1]), 3 * np.pi * factor, 1e-5)


@pytest.mark.parametrize("height", [0.6, 1.0, 3.0])
def test_sphere_is_exact_above_the_horizon(height):
    lamp = sg.SphereLight([0.0, 0, height], 0.5, [3.0] * 3)
    # pi L sin^2(s), at the half angle s.
    expected = 3 * np.pi * (0.5 / height) ** 2
    assert_close(irradiance_at(lamp, [0.0, 0, 0], [0.0, 0, 1]), expected, 1e-5)
    tilted = irradiance_at(lamp, [0.0, 0, 0], [0.1, 0.0, 1])
    if height > 0.6:
        assert_close(tilted, expected / np.hypot(0.1, 1), 1e-4)


@pytest.mark.parametrize("name", LAMPS)
@pytest.mark.parametrize("normal", [[0.0, 0, 1], [0.6, -0.3, 0.5], [1.0, 0.2, 0.1]])
def test_light_is_that_of_random_points(name, normal):
    """Above the horizon, partly below it, and nearly along it."""
    point = np.array([-0.2, 0.1, 0.0])
    found = irradiance_at(LAMPS[name], point, normal)
    expected = sampled_irradiance(LAMPS[name], point, normal)
    assert expected > 0.01
    # A circle is a polygon of equal area: that is off where the horizon cuts it.
    assert_close(found, expected, 2e-3 if name in ("rectangle", "mesh") else 2e-2)


@pytest.mark.parametrize("name", LAMPS)
def test_density_of_points_adds_up_to_the_solid_angle(name):
    lamp, point = LAMPS[name], jnp.array([-0.2, 0.1, 0.0])
    grid = (np.stack(np.meshgrid(*[np.arange(150)] * 2), -1).reshape(-1, 2) + 0.5) / 150
    points = jax.jit(jax.vmap(lambda u: lamp.sample_point(point, u)))(jnp.asarray(grid))
    again = jax.vmap(lambda x, n: lamp.density(point, x, n))(points.position, points.normal)
    assert_close(again, points.density, 1e-5)
    # The mean of 1 / density is the solid angle; here that of directions that meet the body.
    place = (np.arange(500) + 0.5) / 500
    cosine, angle = (x.ravel() for x in np.meshgrid(place, 2 * np.pi * place))
    sine = np.sqrt(1 - cosine**2)
    ways = jnp.asarray(np.stack([sine * np.cos(angle), sine * np.sin(angle), cosine], axis=1))
    scene = sg.Scene(sg.Group(lamp=lamp))
    hits = sg.cast_rays(scene, jnp.broadcast_to(point, ways.shape), ways)
    expected = 2 * np.pi * np.mean(np.isfinite(hits.t))
    assert_close(np.mean(1 / np.asarray(points.density)), expected, 0.01)


def visible_part(lamp, occluder, point, count=300):
    """The part of a lamp's points that an occluder does not hide from a point."""
    grid = (np.stack(np.meshgrid(*[np.arange(count)] * 2), -1).reshape(-1, 2) + 0.5) / count
    points = jax.vmap(lambda u: lamp.sample_point(jnp.asarray(point), u))(jnp.asarray(grid))
    ways = points.position - jnp.asarray(point)
    scene = sg.Scene(sg.Group(x=sg.Surface(occluder, [1.0] * 3)))
    hits = sg.cast_rays(scene, jnp.broadcast_to(jnp.asarray(point), ways.shape), ways)
    return np.mean(np.asarray(hits.t) > 1)


# Of each occluder, how far the shadow of one cone may be from the truth: an edge and a disk within
# the cone are exact but for the change of its width with the distance.
OCCLUDERS = {
    "edge": (sg.Rectangle([2.0, 0, 1.0], [4.0, 8.0]), 2e-3),
    "sphere": (sg.Sphere([0.1, 0.1, 1.0], 0.2), 2e-2),
    "box": (sg.Box([-0.1, -0.2, 0.8], [0.3, 0.15, 1.0]), 4e-2),
}


@pytest.mark.parametrize("name", OCCLUDERS)
def test_soft_shadow_is_the_hidden_part(name):
    occluder, tolerance = OCCLUDERS[name]
    lamp = sg.RectangleLight([0.0, 0, 2], [0.4, 0, 0], [0, 0.4, 0], [3.0] * 3, splits=1)
    floor = sg.Surface(sg.Plane(), sg.Lambert([1.0] * 3))
    lit = sg.Scene(sg.Group(lamp=lamp, floor=floor), **BLACK)
    shaded = sg.Scene(sg.Group(lamp=lamp, floor=floor, x=sg.Surface(occluder, [0.0] * 3)), **BLACK)
    for place in (-0.45, -0.3, -0.1, 0.0, 0.2, 0.35):
        point = np.array([place, 0.05, 0.0])
        eye = point + np.array([0, 0, 1e-2])
        down = np.array([[0.0, 0, -1]])
        rays = sg.rays.Ray(eye[None], down, down, *jnp.zeros((2, 1, 2, 3)), [0.0], [1.0])
        colors = [sg.render_rays(scene, rays)[-1].rgb[0, 0] for scene in (shaded, lit)]
        expected = visible_part(lamp, occluder, point)
        assert abs(colors[0] / colors[1] - expected) < tolerance, place


def test_parts_of_a_lamp_converge_to_the_truth():
    occluder = sg.Box([-0.3, -0.2, 0.8], [0.3, 0.3, 1.4])
    point, errors = np.array([0.35, 0.1, 0.0]), []
    for splits in (1, 4):
        lamp = sg.RectangleLight([0.0, 0, 2], [0.8, 0, 0], [0, 0.8, 0], [3.0] * 3, splits=splits)
        floor = sg.Surface(sg.Plane(), sg.Lambert([1.0] * 3))
        box = sg.Surface(occluder, [0.0] * 3)
        scene = sg.Scene(sg.Group(lamp=lamp, floor=floor, x=box), **BLACK)
        down = np.array([[0.0, 0, -1]])
        eye = (point + np.array([0, 0, 1e-2]))[None]
        rays = sg.rays.Ray(eye, down, down, *jnp.zeros((2, 1, 2, 3)), [0.0], [1.0])
        color = float(sg.render_rays(scene, rays)[-1].rgb[0, 0])
        grid = (np.stack(np.meshgrid(*[np.arange(150)] * 2), -1).reshape(-1, 2) + 0.5) / 150
        points = jax.vmap(lamp.sample_point, (None, 0))(jnp.asarray(point), jnp.asarray(grid))
        ways = np.asarray(points.position) - point
        alone = sg.Scene(sg.Group(x=box))
        hits = sg.cast_rays(alone, jnp.broadcast_to(point, ways.shape), jnp.asarray(ways))
        cosine = ways[:, 2] / np.linalg.norm(ways, axis=1)
        light = np.where(np.asarray(hits.t) > 1, 3.0 * cosine / points.density, 0)
        errors.append(abs(color - np.mean(light) / np.pi) / color)
    assert errors[1] < 0.01
    assert errors[1] < errors[0]


@pytest.mark.parametrize("name", LAMPS)
def test_camera_sees_the_radiance(name):
    scene = sg.Scene(sg.Group(lamp=LAMPS[name]), **BLACK)
    view = sg.PerspectiveCamera.look_at([0, 0.1, -3], [0.1, 0.2, 1.5], [0, 1, 0], 0.1, 9, 9)
    picture = sg.render(scene, view)
    assert_close(picture.rgb[4, 4], [2.0] * 3, 1e-6)
    assert sg.surface_paths(scene) == ["lamp"]


@pytest.mark.parametrize("kind", ["rectangle", "disk", "mesh"])
def test_one_side_shines_to_the_normal(kind):
    lamp = {
        "rectangle": sg.RectangleLight([0.0, 0, 2], [0.5, 0, 0], [0, 0.5, 0], [2.0] * 3, False),
        "disk": sg.DiskLight([0.0, 0, 2], [0, 0, 1.0], 0.5, [2.0] * 3, False),
        "mesh": sg.MeshLight(SQUARE, [[0, 1, 2], [0, 2, 3]], [2.0] * 3, False),
    }[kind]
    assert irradiance_at(lamp, [0.0, 0, 0], [0.0, 0, 1]) == 0
    assert irradiance_at(lamp, [0.0, 0, 4], [0.0, 0, -1]) > 0.2
    scene = sg.Scene(sg.Group(lamp=lamp), **BLACK)
    for height, expected in ((0.0, 0.0), (4.0, 2.0)):
        view = sg.PerspectiveCamera.look_at(
            [0.01, 0.02, height], [0.01, 0.02, 2], [0, 1, 0], 0.1, 3, 3
        )
        assert_close(sg.render(scene, view).rgb[1, 1, 0], expected, 1e-6)
    # A mirror keeps the side: seen in it, the lamp shines away from the floor.
    mirrored = sg.Scene(
        sg.Group(
            lamp=sg.Transformed(lamp, sg.Affine(jnp.diag(jnp.array([1.0, 1, -1])))),
            floor=sg.Surface(sg.Plane([0.0, 0, -4]), sg.Lambert([1.0] * 3)),
        ),
        **BLACK,
    )
    down = jnp.array([[0.0, 0, -1]])
    rays = sg.rays.Ray(
        jnp.array([[0.0, 0, -3.9]]), down, down, *jnp.zeros((2, 1, 2, 3)), [0.0], [1.0]
    )
    assert float(sg.render_rays(mirrored, rays)[-1].rgb[0, 0]) > 0.05


@pytest.mark.parametrize("name", LAMPS)
def test_gradients_are_those_of_differences(name):
    """By every leaf of a lamp over a floor and a ball, in double precision, without edges."""
    with jax.enable_x64(True):
        lamp = jax.tree.map(
            lambda x: x.astype(float) if eqx.is_inexact_array(x) else x, LAMPS[name]
        )
        floor = sg.Surface(sg.Plane(), sg.Lambert(np.array([0.6, 0.7, 0.8])))
        ball = sg.Surface(sg.Sphere(np.array([0.2, 0.1, 0.5]), np.array(0.3)), [0.1] * 3)
        points = np.array([[0.3, 0.3], [-0.4, 0.2], [0.1, -0.5], [1.5, 0.3]])
        eyes = jnp.concatenate([points, jnp.full((4, 1), 1e-2)], axis=1)
        down = jnp.broadcast_to(jnp.array([0.0, 0, -1]), (4, 3))
        sides = jnp.zeros((4, 2, 3)).at[:, 0, 0].set(0.01).at[:, 1, 1].set(0.01)
        rays = sg.rays.Ray(eyes, down, down, sides, 0 * sides, jnp.zeros(4), jnp.ones(4))

        def mean(lamp):
            scene = sg.Scene(sg.Group(lamp=lamp, floor=floor, ball=ball), **BLACK)
            weights = jnp.arange(1.0, 5)[:, None]
            return jnp.sum(weights * sg.render_rays(scene, rays)[-1].rgb)

        leaves, structure = jax.tree.flatten(eqx.filter(lamp, eqx.is_inexact_array))
        rest = eqx.filter(lamp, eqx.is_inexact_array, inverse=True)
        value = lambda leaves: mean(eqx.combine(jax.tree.unflatten(structure, leaves), rest))
        value = jax.jit(value)
        found = jax.jit(jax.grad(lambda leaves: value(leaves)))(leaves)
        rng = np.random.default_rng(0)
        for place, leaf in enumerate(leaves):
            way = jnp.asarray(rng.normal(size=leaf.shape))
            moved = lambda step: [*leaves[:place], leaf + step * way, *leaves[place + 1 :]]  # noqa: B023
            step = 1e-5
            expected = (value(moved(step)) - value(moved(-step))) / (2 * step)
            assert abs(jnp.sum(found[place] * way) - expected) < 2e-3 * (1 + abs(expected)), place


@pytest.mark.parametrize("name", LAMPS)
def test_coincidences_are_finite(name):
    """A lamp of no size, on the surface, in the point, and behind it."""
    small = {
        "rectangle": sg.RectangleLight([0.0, 0, 2], [0.0] * 3, [0.0] * 3, [2.0] * 3),
        "disk": sg.DiskLight([0.0, 0, 2], [0.0, 0, 1], 0.0, [2.0] * 3),
        "sphere": sg.SphereLight([0.0, 0, 2], 0.0, [2.0] * 3),
        "mesh": sg.MeshLight(np.zeros((3, 3)) + [0, 0, 2.0], [[0, 1, 2]], [2.0] * 3),
    }[name]
    floor = sg.Surface(sg.Plane(), sg.Lambert([0.6] * 3))
    view = sg.PerspectiveCamera.look_at([0, -3, 1], [0, 0, 0], [0, 0, 1], 0.5, 5, 5)

    def mean(lamp):
        return jnp.mean(sg.render(sg.Scene(sg.Group(lamp=lamp, floor=floor), **BLACK), view).rgb)

    compute = eqx.filter_jit(eqx.filter_value_and_grad(mean))
    for height in (0.0, -1.5, -3.0):
        moved = LAMPS[name].moved(sg.Similarity(translation=[0.0, 0.0, height]))
        for lamp in (moved, small) if height == 0 else (moved,):
            value, change = compute(lamp)
            assert np.isfinite(value)
            assert all(np.isfinite(x).all() for x in jax.tree.leaves(change))


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: sg.RectangleLight([0.0] * 3, [1.0, 0, 0], [0, 1.0, 0], [-1.0, 0, 0]), "radiance"),
        (
            lambda: sg.RectangleLight([0.0] * 3, [1.0, 0, 0], [0, 1.0, 0], [1.0] * 3, splits=0),
            "splits",
        ),
        (lambda: sg.DiskLight([0.0] * 3, [0.0] * 3, 1.0, [1.0] * 3), "normal"),
        (lambda: sg.SphereLight([0.0] * 3, -1.0, [1.0] * 3), "radius"),
        (lambda: sg.MeshLight(SQUARE, [[0, 1, 4]], [1.0] * 3), "faces\\[0\\]"),
    ],
)
def test_wrong_numbers_are_refused(build, message):
    with pytest.raises(ValueError, match=message):
        build()
