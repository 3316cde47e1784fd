"""Reflection and refraction by cones, against pictures and numbers that need none."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import scenegraph as sg
from support.helpers import assert_close


MIRROR = sg.Principled(base_color=[1.0, 1.0, 1.0], metallic=1.0, roughness=0.0)
SKY = {"background": [0.2, 0.3, 0.5]}


def seen(scene, origin, direction, integrator=None):
    """The colour along one thin ray."""
    direction = np.asarray(direction, float)
    direction = jnp.asarray(direction / np.linalg.norm(direction))[None]
    origin = jnp.asarray(origin, direction.dtype)[None]
    sides = jnp.zeros((2, 1, 2, 3)) + 1e-4 * jnp.eye(2, 3)
    rays = sg.rays.Ray(origin, direction, direction, *sides, [0.0], [100.0])
    return np.asarray(sg.render_rays(scene, rays, integrator)[-1].rgb[0])


def test_flat_mirror_shows_the_mirrored_scene():
    """A camera over a mirror, beside a mirrored camera that looks up through no mirror."""
    things = {
        "lamp": sg.PointLight([1.0, -2.0, 3.0], [30.0] * 3),
        "ball": sg.Surface(sg.Sphere([0.0, 0.3, 0.8], 0.5), sg.Lambert([0.9, 0.4, 0.2])),
        "box": sg.Surface(sg.Box([-1.2, 0.5, 0.3], [-0.7, 1.0, 0.9]), sg.Lambert([0.2, 0.5, 0.9])),
    }
    mirror = sg.Surface(sg.Plane(), MIRROR)
    with_mirror = sg.Scene(sg.Group(mirror=mirror, **things), **SKY)
    eye, target = np.array([0.3, -4.0, 1.0]), np.array([0.0, 0.3, -0.6])
    view = sg.PerspectiveCamera.look_at(eye, target, [0, 0, 1], 0.35, 48, 32)
    below = sg.Transformed(view, sg.Affine(jnp.diag(jnp.array([1.0, 1.0, -1.0]))))
    # In the mirror, what is above is seen from below; shadows fall on nothing else.
    alone = sg.Scene(sg.Group(view=below, **things), **SKY)
    shown, expected = sg.render(with_mirror, view), sg.render(alone, "view")
    ball = np.asarray(expected.alpha) > 0.99
    assert ball.sum() > 100
    difference = np.abs(np.asarray(shown.rgb - expected.rgb))[1:-1, 1:-1].max(axis=-1)
    # The lamp shines on the mirror, and what it mirrors is seen; no light comes from it.
    assert np.quantile(difference, 0.98) < 2e-3
    assert difference.mean() < 1e-3


def test_mirrors_between_mirrors_show_a_series():
    """Between two mirrors that reflect nine tenths, a wall is seen once for each bounce."""
    dim = sg.Principled(base_color=[0.5, 0.5, 0.5], metallic=1.0, roughness=0.0)
    scene = sg.Scene(
        sg.Group(
            left=sg.Surface(sg.Plane([-1.0, 0, 0], [1.0, 0, 0]), dim),
            right=sg.Surface(sg.Plane([1.0, 0, 0], [-1.0, 0, 0]), dim),
        ),
        background=[1.0, 1.0, 1.0],
    )
    # Away from the normal, a metal's reflectance is Schlick's: F = f + (1 - f) (1 - c)^5.
    direction = np.array([1.0, 0.1, 0.0]) / np.hypot(1, 0.1)
    reflected = 0.5 + 0.5 * (1 - direction[0]) ** 5
    for bounces in (1, 2, 3):
        found = seen(scene, [0.0, 0, 0], direction, sg.Surfaces(bounces=bounces))
        # Each bounce leaves a part, and the last one sees the background.
        assert_close(found, [reflected ** (bounces + 1)] * 3, 2e-3)
    # Without bounces, a mirror shows what is all around.
    assert_close(seen(scene, [0.0] * 3, direction, sg.Surfaces(bounces=0)), [reflected] * 3, 2e-3)


@pytest.mark.slow
def test_curved_mirror_is_filtered():
    """One cone a pixel, beside the mean of 64."""
    checker = sg.Lambert(sg.Checker(0.5, [0.8] * 3, [0.2] * 3))
    scene = sg.Scene(
        sg.Group(
            lamp=sg.RectangleLight([1.0, -2, 3], [0.5, 0, 0], [0, 0.5, 0], [10.0] * 3),
            ball=sg.Surface(sg.Sphere([0.0, 0.0, 0.5], 0.5), MIRROR),
            red=sg.Surface(sg.Sphere([-0.3, -0.9, 0.2], 0.2), sg.Lambert([0.9, 0.1, 0.1])),
            floor=sg.Surface(sg.Plane(), checker),
        ),
        **SKY,
    )
    view = sg.PerspectiveCamera.look_at([0, -5, 2.5], [0.0, 0, 0.5], [0, 0, 1], 0.24, 64, 64)
    one, many = (sg.render(scene, view, samples_per_pixel=n).rgb for n in (1, 64))
    assert abs(float(one.mean() / many.mean()) - 1) < 5e-3
    assert float(jnp.mean(jnp.abs(one - many))) < 3e-3


def test_pane_of_thin_glass_does_not_bend():
    pane = sg.Principled([1.0] * 3, roughness=0.0, transmission=1.0, thin_walled=True)
    wall = sg.Surface(sg.Plane([0.0, 2.0, 0.0], [0.0, -1.0, 0.0]), [0.8, 0.4, 0.2])
    front = sg.Surface(sg.Plane([0.0, 0.0, 0.0], [0.0, -1.0, 0.0]), pane)
    scene = sg.Scene(sg.Group(wall=wall, pane=front), background=[0.0] * 3)
    found = seen(scene, [0.0, -1, 0], [0.0, 1, 0])
    # KHR_materials_transmission: one face reflects, R = 0.04.
    assert_close(found, 0.96 * np.array([0.8, 0.4, 0.2]), 2e-3)


def test_slab_of_glass_moves_what_is_behind_it():
    """Snell's law: through a plate, a line is moved aside and goes on as before."""
    glass = sg.Principled([1.0] * 3, roughness=0.0, transmission=1.0, ior=1.5)
    slab = sg.Surface(sg.Box([-5.0, 0.0, -5.0], [5.0, 1.0, 5.0]), glass)
    wall = sg.Surface(sg.Plane([0.0, 3.0, 0.0], [0.0, -1.0, 0.0]), sg.Normals())
    marks = {}
    for index, place in enumerate(np.linspace(-0.5, 3.0, 15)):
        # Stripes of known colours on the wall, a quarter wide.
        color = [(index + 1) / 20, 0.0, 0.0]
        marks[f"m{index:02d}"] = sg.Surface(
            sg.Box([place - 0.124, 2.5, -1.0], [place + 0.124, 2.6, 1.0]), color
        )
    scene = sg.Scene(sg.Group(slab=slab, wall=wall, **marks), background=[0.0] * 3)
    for angle in (0.2, 0.5, 0.8):
        found = seen(scene, [0.0, -1.0, 0.0], [np.sin(angle), np.cos(angle), 0.0])
        inside = np.arcsin(np.sin(angle) / 1.5)
        # x at the stripes: 1 before, 1 through the plate, 1.5 behind it.
        place = (1 + 1.5) * np.tan(angle) + np.tan(inside)
        index = round((place + 0.5) / 0.25)
        near = abs(place - (-0.5 + 0.25 * index))
        if near > 0.1:
            continue
        # Both faces pass 1 - F, with Fresnel's F; light to and fro within is cut off.
        cosines = np.cos(angle), np.cos(inside)
        across = ((cosines[0] - 1.5 * cosines[1]) / (cosines[0] + 1.5 * cosines[1])) ** 2
        along = ((1.5 * cosines[0] - cosines[1]) / (1.5 * cosines[0] + cosines[1])) ** 2
        passed = (1 - (across + along) / 2) ** 2
        assert_close(found[0], passed * (index + 1) / 20, 0.02)


def test_ball_of_glass_turns_the_picture_over():
    glass = sg.Principled([1.0] * 3, roughness=0.0, transmission=1.0, ior=1.5)
    scene = sg.Scene(
        sg.Group(
            ball=sg.Surface(sg.Sphere([0.0, 0, 0], 0.5), glass),
            up=sg.Surface(sg.Box([-9.0, 5.0, 0.0], [9.0, 5.1, 9.0]), [1.0, 0.0, 0.0]),
            down=sg.Surface(sg.Box([-9.0, 5.0, -9.0], [9.0, 5.1, 0.0]), [0.0, 0.0, 1.0]),
        ),
        background=[0.0] * 3,
    )
    above = seen(scene, [0.0, -3, 0.2], [0.0, 1, 0])
    below = seen(scene, [0.0, -3, -0.2], [0.0, 1, 0])
    assert above[2] > 0.85 > 0.05 > above[0]
    assert below[0] > 0.85 > 0.05 > below[2]
    # The paraxial focal length of a ball: n D / (4 (n - 1)), from its middle.
    focus, height = 1.5 * 1.0 / (4 * 0.5), 0.01
    near = sg.Scene(
        sg.Group(
            ball=sg.Surface(sg.Sphere([0.0, 0, 0], 0.5), glass),
            spot=sg.Surface(sg.Box([-1e-3, focus, -1e-3], [1e-3, focus + 0.01, 1e-3]), [1.0] * 3),
        ),
        background=[0.0] * 3,
    )
    assert seen(near, [0.0, -3, height], [0.0, 1, 0])[0] > 0.85


@pytest.mark.parametrize("metallic", [0.0, 1.0])
def test_white_surroundings_make_white_things(metallic):
    sky = sg.EnvironmentLight(np.ones((8, 16, 3)), samples=64)
    for roughness in (0.0, 0.3, 0.6, 1.0):
        white = sg.Principled([1.0] * 3, metallic=metallic, roughness=roughness)
        ball = sg.Surface(sg.Sphere([0.0] * 3, 1.0), white)
        scene = sg.Scene(sg.Group(ball=ball, sky=sky), background=[1.0] * 3)
        for height in (0.0, 0.5, 0.9):
            found = seen(scene, [0.0, -3, height], [0.0, 1, 0])
            assert abs(found[0] - 1) < 0.01, (roughness, height)


def test_underside_of_a_ball_shows_the_table():
    """A panorama is hidden by what is near."""
    sky = sg.EnvironmentLight(np.ones((8, 16, 3)), samples=64)
    metal = sg.Principled([1.0] * 3, metallic=1.0, roughness=0.3)
    scene = sg.Scene(
        sg.Group(
            ball=sg.Surface(sg.Sphere([0.0, 0, 0.5], 0.5), metal),
            table=sg.Surface(sg.Plane(), [0.0, 0.2, 0.0]),
            sky=sky,
        ),
        background=[1.0] * 3,
    )
    top, bottom = (seen(scene, [0.0, -3, h], [0.0, 1, 0]) for h in (0.85, 0.15))
    assert top[0] > 0.95
    assert bottom[0] < 0.15
    assert_close(bottom[1], 0.2, 0.1)


def test_gradients_in_a_mirror_are_those_of_differences():
    """By colour and place of a ball that a curved mirror shows, and by the mirror's own."""
    with jax.enable_x64(True):
        number = lambda *x: jnp.asarray(x, float)
        scene = sg.Scene(
            sg.Group(
                lamp=sg.PointLight(number(1.0, -2.0, 3.0), number(20.0, 20, 20)),
                ball=sg.Surface(
                    sg.Sphere(number(0.0, 0.0, 0.5), jnp.asarray(0.5)),
                    sg.Principled(number(0.9, 0.8, 0.7), metallic=1.0, roughness=0.0),
                ),
                red=sg.Surface(
                    sg.Sphere(number(-0.3, -0.9, 0.2), jnp.asarray(0.2)),
                    sg.Lambert(number(0.9, 0.3, 0.1)),
                ),
            ),
            background=number(0.2, 0.3, 0.5),
        )
        scene = jax.tree.map(lambda x: x.astype(float) if eqx.is_inexact_array(x) else x, scene)
        view = sg.PerspectiveCamera.look_at(
            [0.0, -5, 1.5], [-0.12, -0.4, 0.3], [0, 0, 1], 0.12, 12, 12
        )
        view = jax.tree.map(lambda x: x.astype(float) if eqx.is_inexact_array(x) else x, view)
        weights = np.random.default_rng(0).uniform(size=(12, 12, 3))
        places = ["red.shape.center", "red.shader.albedo.color", "ball.shape.radius"]
        places += ["ball.shader.base_color.color", "ball.shape.center"]
        loss = lambda scene: jnp.sum(weights * sg.render(scene, view).rgb)
        found = eqx.filter_jit(eqx.filter_grad(loss))(scene)
        value = eqx.filter_jit(loss)
        for place in places:
            leaf = scene.root[place]
            way = jnp.asarray(np.random.default_rng(1).normal(size=leaf.shape))
            step = 1e-4
            moved = lambda size: sg.replace(scene, {place: leaf + size * way})  # noqa: B023
            expected = (value(moved(step)) - value(moved(-step))) / (2 * step)
            change = jnp.sum(found.root[place] * way)
            assert abs(change - expected) < 0.03 * abs(expected) + 1e-2, place


def test_black_mirrors_have_gradients():
    """By a colour of zero, also of a mirror in a mirror: what is seen there, times the rest."""

    def total(color):
        near = sg.Principled(color, metallic=1.0, roughness=0.0)
        left = sg.Surface(sg.Plane([-1.0, 0, 0], [1.0, 0, 0]), MIRROR)
        right = sg.Surface(sg.Plane([1.0, 0, 0], [-1.0, 0, 0]), near)
        scene = sg.Scene(sg.Group(left=left, right=right), background=[1.0, 1.0, 1.0])
        way = jnp.array([[-1.0, 0.0, 0.0]])
        sides = jnp.zeros((2, 1, 2, 3)) + 1e-4 * jnp.eye(2, 3)[:, ::-1]
        rays = sg.rays.Ray(jnp.zeros((1, 3)), way, way, *sides, [0.0], [100.0])
        return jnp.sum(sg.render_rays(scene, rays, sg.Surfaces(bounces=2))[-1].rgb)

    # Head-on, the right mirror reflects its colour: white, colour, white, and then the background.
    value, change = jax.jit(jax.value_and_grad(total))(jnp.zeros(3))
    assert abs(value) < 1e-6
    assert_close(change, [1.0] * 3, 1e-3)


def test_one_ray_that_overflows_is_counted_alone():
    """In the mirror's left half there are more veils behind each other than layers."""
    veils = {
        f"veil{i}": sg.Surface(sg.Box([-3.0, 2.0 + i, -3.0], [-0.2, 2.1 + i, 3.0]), [0.5] * 3, 0.3)
        for i in range(6)
    }
    mirror = sg.Surface(sg.Plane([0.0, 4.0, 0.0], [0.0, -1.0, 0.0]), MIRROR)
    veils = {
        name: sg.Transformed(veil, sg.Similarity(translation=[0.0, -11.0, 0.0]))
        for name, veil in veils.items()
    }
    scene = sg.Scene(sg.Group(mirror=mirror, **veils), **SKY)
    places = np.array([[-0.5, 0.0, 0.0], [0.5, 0.0, 0.0]])
    ways = jnp.tile(jnp.array([0.0, 1.0, 0.0]), (2, 1))
    sides = jnp.zeros((2, 2, 2, 3)) + 1e-4 * jnp.array([[1.0, 0, 0], [0, 0, 1]])
    rays = sg.rays.Ray(jnp.asarray(places), ways, ways, *sides, jnp.zeros(2), jnp.full(2, 100.0))
    overflow = sg.render_rays(scene, rays, sg.Surfaces(layers=2))[-1].overflow
    assert overflow[0] > 0
    assert overflow[1] == 0


def test_wrong_bounces_are_refused():
    with pytest.raises(ValueError, match="bounces"):
        sg.Surfaces(bounces=-1)
