"""Pictures through candidate lists are those of asking everything."""

from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import scenegraph as sg
from scenegraph.rendering._pixel_order import PixelOrder
from scenegraph.rows import _target


def random_scene(seed: int, sunny: bool = True) -> sg.Scene:
    """Shapes of all kinds under nested scaled transforms, shaders and lights of all kinds."""
    draw = np.random.default_rng(seed)
    at = lambda: draw.uniform([-1.2, -1.2, 0.1], [1.2, 1.2, 1.2])
    color = lambda: sg.Lambert(draw.uniform(0.2, 0.9, 3))
    balls = {
        f"ball{i}": sg.Surface(sg.Sphere(at(), draw.uniform(0.02, 0.3)), color()) for i in range(9)
    }
    turn = sg.Similarity(scale=draw.uniform(0.5, 1.5))
    rods = {
        f"rod{i}": sg.Surface(sg.Capsule(at(), at(), 0.05), sg.Lambert(draw.uniform(0.2, 0.9, 3)))
        for i in range(2)
    }
    squash = sg.Affine(np.diag(draw.uniform(0.5, 1.5, 3)), draw.uniform(-0.3, 0.3, 3))
    box = sg.Surface(sg.Box(-0.2 * np.ones(3), [0.2, 0.1, 0.3]), sg.Lambert(sg.Checker(0.2)))
    lamp = sg.PointLight(draw.uniform([-2, -2, 3], [2, 2, 4]), [20.0] * 3)
    sun = sg.DirectionalLight(draw.uniform([-1, -1, -2], [1, 1, -1]), [0.5] * 3)
    return sg.Scene(
        sg.Group(
            **balls,
            **({"lamp": lamp, "sun": sun} if sunny else {"lamp": lamp}),
            floor=sg.Surface(sg.Plane(), sg.Lambert(sg.Checker(0.5))),
            inner=sg.Transformed(sg.Group(**rods, box=sg.Transformed(box, squash)), turn),
            ambient=sg.AmbientLight([0.1] * 3),
        )
    )


AT = [0.0, -3.0, 1.5], [0.0, 0.0, 0.4], [0.0, 0.0, 1.0]
POSE = sg.Pose.look_at(*AT)
CAMERAS = {
    "perspective": sg.PerspectiveCamera.look_at(*AT, 0.8, 20, 12),
    "orthographic": sg.OrthographicCamera.look_at(*AT, 3.0, 20, 12),
    "fisheye": sg.FisheyeCamera(POSE, [8.0, 8.0], 20, 12, k1=0.1),
    "panorama": sg.PanoramaCamera(POSE, 20, 12),
}


@eqx.filter_jit
def picture(scene, camera, lists: bool):
    image = sg.render(scene, camera, sg.Surfaces(12, lists=lists))
    return {"rgb": image.rgb, "alpha": image.alpha, "overflow": image.overflow}


@eqx.filter_jit
def gradient(scene, camera, weights, lists: bool):
    def loss(scene):
        fields = picture(scene, camera, lists)
        return jnp.sum(weights * jnp.dstack([fields["rgb"], fields["alpha"]])), fields

    return eqx.filter_grad(loss, has_aux=True)(scene)


def assert_equal_pictures(a, b):
    assert not np.any(a["overflow"]) and not np.any(b["overflow"])
    for name in ("rgb", "alpha"):
        np.testing.assert_allclose(a[name], b[name], atol=1e-9)


def as_double(tree):
    return jax.tree.map(lambda x: x.astype(float) if eqx.is_inexact_array(x) else x, tree)


@pytest.mark.parametrize(
    ("name", "sunny"),
    [
        ("perspective", False),
        pytest.param("perspective", True, marks=pytest.mark.slow),
        pytest.param("panorama", True, marks=pytest.mark.slow),
    ],
)
def test_pictures_equal_those_of_asking_everything(name, sunny, x64):
    for seed in range(5):
        scene, camera = random_scene(seed, sunny), as_double(CAMERAS[name])
        listed, asked = (picture(scene, camera, lists) for lists in (True, False))
        assert_equal_pictures(listed, asked)


@pytest.mark.slow
@pytest.mark.parametrize("name", CAMERAS)
def test_gradients_equal_those_of_asking_everything(name, x64):
    camera = as_double(CAMERAS[name])
    for seed in range(50):
        scene = random_scene(seed)
        weights = jnp.asarray(np.random.default_rng(seed).normal(size=(12, 20, 4)))
        found, listed = gradient(scene, camera, weights, True)
        expected, asked = gradient(scene, camera, weights, False)
        assert_equal_pictures(listed, asked)
        for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
            np.testing.assert_allclose(a, b, atol=1e-7 * max(1, float(jnp.max(jnp.abs(b)))))


def six_hundred_balls() -> sg.Scene:
    """A tree of many levels holds them, for shadow rays, too."""
    draw = np.random.default_rng(3)
    at = jnp.asarray(draw.uniform([-1, -1, 0.1], [1, 1, 1.0], (600, 3)))
    places = jax.vmap(lambda at: sg.Similarity(at, scale=0.04))(at)
    balls = sg.Instances(sg.Surface(sg.Sphere(), sg.Lambert([0.6, 0.5, 0.4])), places)
    floor = sg.Surface(sg.Plane(), sg.Lambert(sg.Checker(0.5)))
    lamp = sg.PointLight([1.0, -1.0, 4.0], [20.0] * 3)
    return sg.Scene(sg.Group(balls=balls, floor=floor, lamp=lamp))


NEAR = sg.PerspectiveCamera.look_at(*AT, 0.25, 20, 12)


@pytest.mark.slow
def test_pictures_of_many_things_equal_those_of_asking_everything(x64):
    scene, camera = six_hundred_balls(), as_double(NEAR)
    assert_equal_pictures(picture(scene, camera, True), picture(scene, camera, False))


@pytest.mark.slow
def test_gradients_of_many_things_equal_those_of_asking_everything(x64):
    scene, camera = six_hundred_balls(), as_double(NEAR)
    weights = jax.random.normal(jax.random.key(3), (12, 20, 4))
    found, listed = gradient(scene, camera, weights, True)
    expected, asked = gradient(scene, camera, weights, False)
    assert_equal_pictures(listed, asked)
    for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-4 * max(1, float(jnp.max(jnp.abs(b)))))


WIDE = {"orthographic": 42, "fisheye": 7, "panorama": 37}


@pytest.mark.slow
@pytest.mark.parametrize("name", WIDE)
def test_wide_pixels_see_no_surface_beyond_its_bounds(name, x64):
    """Edges continued straight were seen by pixels that did not touch the shape."""
    camera, scene = as_double(CAMERAS[name]), random_scene(WIDE[name])
    listed, dense = (picture(scene, camera, lists) for lists in (True, False))
    for field in ("rgb", "alpha"):
        np.testing.assert_allclose(listed[field], dense[field], atol=1e-12)


@pytest.mark.parametrize("size", [(1, 1), (8, 8), (20, 13), (7, 30), (300, 265), (3, 4000)])
def test_pixels_go_square_by_square_and_tile_by_tile(size):
    width, height = size
    pixels = PixelOrder(width, height, 8).pixel(jnp.arange(width * height))
    y, x = np.divmod(np.arange(width * height), width)
    # The last counts first.
    keys = x % 4, y % 4, x // 4, y // 4, x // 8, y // 8, x // 128, y // 128
    np.testing.assert_array_equal(pixels, np.lexsort(keys))


def test_pixels_show_how_many_surfaces_they_may_touch():
    camera = sg.PerspectiveCamera.look_at([0, -9, 0], [0, 0, 0], [0, 0, 1], 0.7, 48, 32)
    at = np.stack(np.meshgrid(np.linspace(-2.5, 2.5, 6), 0, np.linspace(-1.5, 1.5, 4)), axis=-1)
    ball = lambda x: sg.Surface(sg.Sphere(x, 0.2), [0.5] * 3)
    balls = {f"ball{i}": ball(x) for i, x in enumerate(at.reshape(-1, 3))}
    image = sg.render(sg.Scene(sg.Group(**balls)), camera, outputs=["candidates"])
    assert np.all(image.candidates[image.alpha > 0] > 0)
    assert np.max(image.candidates) < len(balls) / 4 and np.mean(image.candidates == 0) > 0.05


def test_another_number_of_things_compiles_no_kernel():
    camera = sg.PerspectiveCamera.look_at([0, -9, 2], [0, 0, 0], [0, 0, 1], 0.7, 24, 16)
    listed = sg.Surfaces(lists=True)
    picture = eqx.filter_jit(lambda scene: sg.render(scene, camera, listed).rgb)

    def scene_of(count):
        place = lambda i: [0.5 * i - 2, 0.1 * i, 0.5]
        paper = sg.Lambert([0.8] * 3)
        balls = {f"ball{i}": sg.Surface(sg.Sphere(place(i), 0.2), paper) for i in range(count)}
        lamp, floor = sg.PointLight([1.0, -2, 4], [20.0] * 3), sg.Surface(sg.Plane(), paper)
        return sg.Scene(sg.Group(floor=floor, lamp=lamp, **balls))

    # Tables of up to 64 rows are parts of a kernel.
    picture(scene_of(70))
    kernels = len(_target._engines)
    for count in (100, 130, 300):
        picture(scene_of(count))
    assert len(_target._engines) == kernels


@pytest.mark.usefixtures("x64")
def test_gradients_in_double_precision_are_differences():
    camera = sg.PerspectiveCamera.look_at([0, -4, 1], [0, 0, 0.3], [0, 0, 1], 0.7, 8, 6)
    paper, lamp = sg.Lambert([0.8] * 3), sg.PointLight([1.0, -2, 4], [20.0] * 3)

    def loss(radius):
        ball = lambda x: sg.Surface(sg.Sphere(jnp.array([x, 0, 0.4]), radius), paper)
        floor = sg.Surface(sg.Plane([0.0, 0, -0.1]), paper)
        scene = sg.Scene(sg.Group(floor=floor, one=ball(0.3), two=ball(-0.4), lamp=lamp))
        return jnp.mean(sg.render(scene, camera, sg.Surfaces(lists=True)).rgb ** 2)

    value, step = jnp.asarray(0.31), 1e-6
    slope = jax.jit(jax.grad(loss))(value)
    ends = [jax.jit(loss)(value + sign * step) for sign in (1, -1)]
    np.testing.assert_allclose(slope, (ends[0] - ends[1]) / (2 * step), rtol=1e-5)


def stack_of_panes(count: int) -> sg.Scene:
    panes = {
        f"p{i:02}": sg.Surface(
            sg.Rectangle([0.0, 0.0, -float(i)], [9, 9]), [0.1 * (i % 7)] * 3, opacity=0.2
        )
        for i in range(count)
    }
    return sg.Scene(sg.Group(**panes), background=[1.0, 1.0, 1.0])


def test_forced_overflow_is_counted_and_mended():
    camera = sg.PerspectiveCamera.look_at([0, 0, 3], [0, 0, 0], [0, 1, 0], 0.3, 8, 8)
    scene = stack_of_panes(5)
    traced = eqx.filter_jit(lambda s: sg.render(s, camera, sg.Surfaces(3, lists=True)))(scene)
    np.testing.assert_array_equal(traced.overflow, 5 - 3)
    mended = sg.render(scene, camera, sg.Surfaces(3, lists=True))
    assert not np.any(mended.overflow)
    through, color = 1.0, 0.0
    for i in range(5):
        color += through * 0.2 * 0.1 * (i % 7)
        through *= 0.8
    np.testing.assert_allclose(mended.rgb, color + through, atol=1e-6)


def veiled_floor(opacities) -> tuple[sg.Scene, sg.PerspectiveCamera]:
    camera = sg.PerspectiveCamera.look_at([0, 0, 3], [0, 0, 0], [0, 1, 0], 0.3, 8, 8)
    veils = {
        f"v{i}": sg.Surface(sg.Rectangle([0.0, 0.0, 5.0 + i], [9, 9]), [0.0] * 3, opacity=opacity)
        for i, opacity in enumerate(opacities)
    }
    lamp = sg.DirectionalLight([0.0, 0.0, -1.0], [np.pi] * 3)
    floor = sg.Surface(sg.Plane(), sg.Lambert([0.5] * 3))
    return sg.Scene(sg.Group(**veils, floor=floor, lamp=lamp)), camera


@eqx.filter_jit
def light_past_veils(opacities):
    """What reaches a floor past many veils, one above the other."""
    scene, camera = veiled_floor(opacities)
    return jnp.mean(sg.render(scene, camera, sg.Surfaces(4, lists=True)).rgb)


def test_shadows_of_nine_occluders_have_all_derivatives():
    # 0.5 prod (1 - o_i), of which all derivatives are known.
    opacities = jnp.array([0.3, 0.0, 0.2, 0.5, 0.1, 0.3, 0.3, 0.05, 0.3])
    passes = 1 - opacities
    whole = 0.5 * jnp.prod(passes)
    np.testing.assert_allclose(light_past_veils(opacities), whole, rtol=1e-5)
    slopes = jax.grad(light_past_veils)(opacities)
    np.testing.assert_allclose(slopes, -whole / passes, rtol=1e-5)
    way = jnp.linspace(-1.0, 1.0, 9)
    _, change = jax.jvp(light_past_veils, (opacities,), (way,))
    np.testing.assert_allclose(change, -jnp.sum(whole * way / passes), rtol=1e-4)
    second = jax.jvp(jax.grad(light_past_veils), (opacities,), (way,))[1]
    pairs = whole / (passes[:, None] * passes) * (1 - jnp.eye(9))
    np.testing.assert_allclose(second, pairs @ way, rtol=1e-4)


@pytest.mark.parametrize("closed", [1, 2])
def test_shadows_of_opaque_occluders_have_the_derivatives_of_products(closed):
    opacities = jnp.full(9, 0.2).at[3].set(1.0).at[5].set(1.0 if closed == 2 else 0.2)
    slopes = jax.grad(light_past_veils)(opacities)
    assert light_past_veils(opacities) == 0
    wanted = np.zeros(9)
    if closed == 1:
        wanted[3] = -0.5 * 0.8**8
    np.testing.assert_allclose(slopes, wanted, atol=1e-7)


@pytest.mark.slow
def test_shadows_of_a_thousand_occluders_have_all_derivatives():
    opacities = jnp.linspace(0.0, 0.004, 1000)
    whole, passes = 0.5 * jnp.prod(1 - opacities), 1 - opacities
    np.testing.assert_allclose(light_past_veils(opacities), whole, rtol=1e-4)
    np.testing.assert_allclose(jax.grad(light_past_veils)(opacities), -whole / passes, rtol=1e-4)


class Bead(sg.shapes.AbstractSmoothShape):
    """A user's shape that does not say how far it reaches."""

    ball: sg.Sphere
    is_convex: ClassVar[bool] = True
    has_uv: ClassVar[bool] = False

    def cross(self, ray):
        return self.ball.cross(ray)

    def normal_at(self, point):
        return self.ball.normal_at(point)

    def uv_at(self, point):
        return self.ball.uv_at(point)


@pytest.mark.slow
def test_rays_are_tested_against_shapes_without_bounds_which_are_named_once():
    balls = [sg.Sphere([x, y, 0.0], 0.2) for x in range(-3, 3) for y in range(-3, 3)]
    camera = sg.PerspectiveCamera.look_at([0, 0, 9], [0, 0, 0], [0, 1, 0], 0.7, 16, 16)

    def scene_of(shapes):
        return sg.Scene(sg.Group(**{f"s{i}": sg.Surface(x, [0.5] * 3) for i, x in shapes}))

    with pytest.warns(UserWarning, match="Bead has no bounds, so every ray is tested against it"):
        image = sg.render(scene_of(enumerate(map(Bead, balls))), camera)
    np.testing.assert_allclose(
        image.rgb, sg.render(scene_of(enumerate(balls)), camera).rgb, atol=1e-6
    )
    sg.render(scene_of(enumerate(map(Bead, balls))), camera)  # warnings are errors here


@pytest.mark.slow
def test_scenes_under_vmap_are_drawn_like_one_at_a_time():
    def scene_of(seed):
        places = np.random.default_rng(seed).uniform(-2, 2, (40, 3))
        ball = sg.Surface(sg.Sphere(), sg.Lambert([0.5] * 3))
        balls = sg.Instances(ball, [sg.Similarity(at, scale=0.2) for at in places])
        floor = sg.Surface(sg.Plane([0.0, 0.0, -2.0]), sg.Lambert([0.8] * 3))
        return sg.Scene(
            sg.Group(balls=balls, floor=floor, lamp=sg.PointLight([0, 0, 5.0], [9] * 3))
        )

    draw = eqx.filter_jit(lambda scene: sg.render(scene, CAMERAS["perspective"]).rgb)
    scenes = [scene_of(seed) for seed in range(2)]
    both = eqx.filter_jit(eqx.filter_vmap(draw))(jax.tree.map(lambda *x: jnp.stack(x), *scenes))
    for image, scene in zip(both, scenes, strict=True):
        np.testing.assert_allclose(image, draw(scene), atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("count", [1, 80])
def test_constant_scenes_in_traced_functions(count):
    """A picture of constants, such as a target, may be drawn inside `jit`, and again outside."""
    places = np.random.default_rng(0).uniform(-2, 2, (count, 3))
    balls = {f"b{i}": sg.Surface(sg.Sphere(at, 0.2), [0.5] * 3) for i, at in enumerate(places)}
    scene, camera = sg.Scene(sg.Group(**balls)), CAMERAS["perspective"]
    inside = jax.jit(lambda x: x * sg.render(scene, camera).rgb)(jnp.ones(()))
    np.testing.assert_allclose(inside, sg.render(scene, camera).rgb, atol=1e-6)
