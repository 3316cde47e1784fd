"""Random paths against closed forms: furnaces, form factors, lights without a size."""

from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import scenegraph as sg
from scenegraph.shaders import AbstractMaterial


class Glowing(AbstractMaterial):
    """A diffuse surface that shines by itself."""

    emission: jax.Array = eqx.field(converter=jnp.asarray)
    base: sg.Lambert

    needs_light: ClassVar[bool] = True

    def __call__(self, hit, view, lights):
        return self.emission + self.base(hit, view, lights)

    def albedo_at(self, hit, view):
        return self.base.albedo_at(hit, view)

    def scatter(self, hit, view, light):
        return self.base.scatter(hit, view, light)

    def density(self, hit, view, light):
        return self.base.density(hit, view, light)

    def sample(self, hit, view, uniform):
        return self.base.sample(hit, view, uniform)


ALBEDO, EMISSION = np.array([0.8, 0.5, 0.0]), np.array([0.3, 0.2, 1.0])
KEY = jax.random.key(3)


def inside(size=6, **angles):
    """A camera near the middle of the world."""
    eye, target = [0.1, 0.05, -0.1], [0.0, 1.0, 0.2]
    return sg.PerspectiveCamera.look_at(eye, target, [0, 0, 1], angles.get("fov", 1.0), size, size)


def from_above(size=5, height=3.0):
    """A camera that looks down on the origin, and sees little beside it."""
    eye = [0.0, 0.0, height]
    return sg.PerspectiveCamera.look_at(eye, [0, 0, 0], [0, 1, 0], 0.001, size, size)


@pytest.mark.parametrize("shape", [sg.Sphere(), sg.Box([-1.0] * 3, [1.0] * 3)], ids=type)
@pytest.mark.parametrize("bounces", [0, 3])
def test_a_furnace_is_a_geometric_series(shape, bounces):
    shader = Glowing(EMISSION, sg.Lambert(ALBEDO))
    scene = sg.Scene(sg.Group(oven=sg.Surface(shape, shader)), background=[9.0, 9.0, 9.0])
    image = sg.render(scene, inside(), sg.Path(samples=4, bounces=bounces), key=KEY)
    # Light is scattered up to `bounces + 1` times, and no cosine-weighted path has any noise.
    series = EMISSION * sum(ALBEDO**k for k in range(bounces + 2))
    np.testing.assert_allclose(image.rgb, np.broadcast_to(series, (6, 6, 3)), rtol=2e-6)
    np.testing.assert_array_equal(image.alpha, 1)


def test_two_plates_colour_each_other():
    red, blue = np.array([0.9, 0.2, 0.1]), np.array([0.1, 0.3, 0.9])
    floor = sg.Surface(sg.Plane(), Glowing([0.2, 0.2, 0.2], sg.Lambert(red)))
    roof = sg.Plane([0.0, 0.0, 1.0], [0.0, 0.0, -1.0])
    roof = sg.Surface(roof, Glowing([0.0, 0.1, 0.5], sg.Lambert(blue)))
    camera = sg.PerspectiveCamera.look_at([0, 0, 0.5], [0, 0.1, 0], [0, 1, 0], 0.5, 4, 4)
    image = sg.render(sg.Scene(sg.Group(floor=floor, roof=roof)), camera, sg.Path(8, bounces=2))
    # All that a plate sees is the other one: e_1 + a_1 (e_2 + a_2 (e_1 + a_1 e_2)).
    first, second = np.full(3, 0.2), np.array([0.0, 0.1, 0.5])
    light = first + red * (second + blue * (first + red * second))
    np.testing.assert_allclose(image.rgb, np.broadcast_to(light, (4, 4, 3)), rtol=2e-5)


def check_within_noise(image, expected, sigmas=4.5):
    """Compares the mean of a picture with a number, by the variance that it says it has."""
    count = image.rgb.shape[0] * image.rgb.shape[1]
    error = np.sqrt(np.mean(image.variance, axis=(0, 1)) / count)
    mean = np.mean(image.rgb, axis=(0, 1))
    assert np.all(error < 0.02 * np.max(mean)), "the test says little"
    np.testing.assert_array_less(np.abs(mean - expected), sigmas * error + 1e-6)


def test_a_panel_lights_a_point_by_its_form_factor():
    panel = sg.Rectangle([0.0, 0.0, 1.0], size=[1.0, 2.0])
    panel = sg.Surface(panel, [2.0, 1.0, 0.5])
    floor = sg.Surface(sg.Plane(), sg.Lambert(ALBEDO))
    camera = sg.PerspectiveCamera.look_at([0, 0, 0.5], [0, 0, 0], [0, 1, 0], 0.02, 8, 8)
    scene = sg.Scene(sg.Group(panel=panel, floor=floor))
    path = sg.Path(samples=2048, bounces=0)
    image = sg.render(scene, camera, path, key=KEY, outputs=["variance"])
    # Four quarters of a differential area to a rectangle with a corner above it.
    a, b = 0.5, 1.0
    part = lambda x, y: x / np.sqrt(1 + x**2) * np.arctan(y / np.sqrt(1 + x**2))
    factor = 4 * (part(a, b) + part(b, a)) / (2 * np.pi)
    check_within_noise(image, ALBEDO * factor * np.array([2.0, 1.0, 0.5]))


@pytest.mark.parametrize(
    "light",
    [
        sg.PointLight([1.0, -1.0, 2.0], [9.0, 8.0, 7.0]),
        sg.SpotLight([1.0, -1.0, 2.0], [-1.0, 1.0, -2.0], [9.0, 8.0, 7.0]),
        sg.DirectionalLight([0.3, 0.2, -1.0], [3.0, 2.0, 1.0]),
        sg.AmbientLight([0.5, 0.4, 0.3]),
    ],
    ids=type,
)
def test_direct_light_is_that_of_the_closed_forms(light):
    # No edge is in the picture, and shadows are whole or none.
    floor = sg.Surface(sg.Plane(), sg.GGX([0.6, 0.5, 0.4], roughness=0.4))
    roof = sg.Surface(sg.Disk([0.0, 0.0, 5.0], 1.0), [0.0, 0.0, 0.0])
    scene = sg.Scene(sg.Group(floor=floor, roof=roof, light=light))
    camera, lit = from_above(), sg.Path(samples=16, bounces=0)
    expected = sg.render(scene, camera)
    image = sg.render(scene, camera, lit)
    np.testing.assert_allclose(image.rgb, expected.rgb, rtol=1e-4)
    np.testing.assert_allclose(image.depth, expected.depth, rtol=1e-5)


def test_shadows_multiply_what_things_let_pass():
    floor = sg.Surface(sg.Plane(), sg.Lambert([0.8, 0.8, 0.8]))
    ball = sg.Surface(sg.Sphere([0.0, 0.0, 2.0], 0.3), [0.0, 0.0, 0.0], opacity=0.25)
    faces = [[0, 1, 2], [2, 1, 3]]
    corners = [[-1.0, -1, 1], [1, -1, 1], [-1, 1, 1], [1, 1, 1]]
    sheet = sg.Surface(sg.TriangleMesh(corners, faces), [0.0, 0.0, 0.0], opacity=0.5)
    lamp = sg.PointLight([0.0, 0.0, 4.0], [16.0, 16.0, 16.0])
    camera = sg.PerspectiveCamera.look_at([0, 0, 0.5], [0, 0, 0], [0, 1, 0], 0.02, 4, 4)
    scene = sg.Scene(sg.Group(floor=floor, ball=ball, sheet=sheet, lamp=lamp))
    image = sg.render(scene, camera, sg.Path(samples=2, bounces=0))
    # The ball has two sides, but one opacity.
    np.testing.assert_allclose(image.rgb, 0.8 / np.pi * 0.75 * 0.5, rtol=1e-3)


def test_an_even_sky_lights_a_ball_evenly():
    sky = sg.EnvironmentLight(jnp.full((4, 8, 3), 0.7))
    ball = sg.Surface(sg.Sphere(), sg.Lambert(ALBEDO))
    camera = sg.PerspectiveCamera.look_at([0, -5, 0], [0, 0, 0], [0, 0, 1], 0.2, 6, 6)
    scene = sg.Scene(sg.Group(ball=ball, sky=sky))
    path = sg.Path(samples=512, bounces=1)
    check_within_noise(sg.render(scene, camera, path, outputs=["variance"]), 0.7 * ALBEDO)


def test_a_sky_of_one_bright_texel_is_found():
    texels = np.zeros((8, 16, 3))
    texels[2, 5] = 40.0
    sky = sg.EnvironmentLight(texels, samples=4096)
    floor = sg.Surface(sg.Plane(), sg.Lambert([0.5, 0.5, 0.5]))
    scene = sg.Scene(sg.Group(floor=floor, sky=sky))
    image = sg.render(scene, from_above(), sg.Path(samples=1024, bounces=0), outputs=["variance"])
    # The integral of the interpolated texels times the cosine, by quadrature.
    down, right = (np.arange(1024) + 0.5) / 1024, (np.arange(2048) + 0.5) / 2048
    tent = lambda x: np.maximum(1 - np.abs(x), 0)
    weights = tent(down * 8 - 2.5)[:, None] * tent(right * 16 - 5.5)
    height = np.cos(np.pi * down)[:, None]
    angle = np.sin(np.pi * down)[:, None] * (np.pi / 1024) * (2 * np.pi / 2048)
    light = np.sum(40 * weights * np.maximum(height, 0) * angle)
    check_within_noise(image, 0.5 / np.pi * light)


def test_a_background_is_seen_beside_things_and_in_what_is_no_diffuse_light():
    metal = sg.GGX([1.0, 1.0, 1.0], metallic=1.0, roughness=0.0)
    chalk = sg.Lambert([0.9, 0.9, 0.9])
    picture = lambda shader: sg.render(
        sg.Scene(sg.Group(ball=sg.Surface(sg.Sphere(), shader)), background=[0.2, 0.4, 0.6]),
        sg.PerspectiveCamera.look_at([0, -5, 0], [0, 0, 0], [0, 0, 1], 0.6, 9, 9),
        sg.Path(samples=64, bounces=1),
        key=KEY,
    )
    mirror, dull = picture(metal), picture(chalk)
    np.testing.assert_allclose(mirror.rgb[0, 0], [0.2, 0.4, 0.6], rtol=1e-6)
    np.testing.assert_allclose(mirror.rgb[4, 4], [0.2, 0.4, 0.6], rtol=2e-2)
    np.testing.assert_array_equal(dull.rgb[4, 4], 0)
    np.testing.assert_allclose(dull.rgb, (1 - dull.alpha[..., None]) * dull.rgb[0, 0], atol=1e-6)


def scene_of_kinds():
    """A floor, a ball and a mesh of three materials, with a lamp and a sky."""
    sky = sg.EnvironmentLight(np.random.default_rng(0).uniform(size=(4, 8, 3)))
    floor = sg.Surface(sg.Plane(), sg.Lambert([0.6, 0.6, 0.6]))
    metal = sg.GGX([0.9, 0.6, 0.2], metallic=1.0, roughness=0.3)
    ball = sg.Surface(sg.Sphere([0.0, 0.0, 0.5], 0.5), metal)
    corners = [[1.0, -1, 0], [1, 1, 0], [1, 0, 1.5]]
    wall = sg.Surface(sg.TriangleMesh(corners, [[0, 1, 2]]), sg.Phong(), opacity=0.7)
    lamp = sg.PointLight([1.0, -1.0, 2.0], [3.0, 3.0, 3.0])
    return sg.Scene(sg.Group(floor=floor, ball=ball, wall=wall, lamp=lamp, sky=sky))


def outside(size=12):
    return sg.PerspectiveCamera.look_at([0, -4, 1.5], [0, 0, 0.5], [0, 0, 1], 0.7, size, size)


def test_pictures_follow_from_the_key_alone():
    scene, path = scene_of_kinds(), sg.Path(samples=8, bounces=2)
    image = sg.render(scene, outside(), path, key=KEY)
    assert np.all(np.isfinite(image.rgb))
    again = sg.render(scene, outside(), path, key=KEY)
    np.testing.assert_array_equal(image.rgb, again.rgb)
    parts = sg.render(scene, outside(), path, key=KEY, chunk=37)
    np.testing.assert_allclose(parts.rgb, image.rgb, rtol=1e-5)
    other = sg.render(scene, outside(), path, key=jax.random.key(4))
    assert np.mean(np.abs(other.rgb - image.rgb)) > 1e-3
    fixed = sg.render(scene, outside(), path)
    np.testing.assert_array_equal(fixed.rgb, sg.render(scene, outside(), path).rgb)
    in_parts = sg.render(scene, outside(), path, chunk=50)
    np.testing.assert_allclose(in_parts.rgb, fixed.rgb, rtol=1e-5)


def test_variance_is_that_of_pictures_of_many_keys():
    scene, path = scene_of_kinds(), sg.Path(samples=32, bounces=2)
    draw = lambda k: sg.render(scene, outside(6), path, key=jax.random.key(k), outputs=["variance"])
    images = [draw(k) for k in range(40)]
    measured = np.mean(np.var([x.rgb for x in images], axis=0, ddof=1))
    stated = np.mean([x.variance for x in images])
    # Of 40 normal numbers, the variance is known to within 22 %, of 108 of them to within 3 %.
    assert abs(measured / stated - 1) < 0.15


def test_outputs_are_those_of_the_first_hits():
    scene = scene_of_kinds()
    names = ["normal", "albedo", "position", "uv", "surface", "median_depth"]
    camera = outside(8)
    image = sg.render(scene, camera, sg.Path(samples=400, bounces=0), outputs=names)
    expected = sg.render(scene, camera, outputs=names)
    # One surface alone, whole.
    whole = np.asarray(expected.alpha) > 0.999
    np.testing.assert_allclose(image.alpha, expected.alpha, atol=0.06)
    assert np.mean(image.surface[whole] == expected.surface[whole]) > 0.95
    # The mean over a pixel of a curved surface is not that in its middle.
    pure = whole & (np.asarray(expected.surface) == 1) & (np.asarray(image.surface) == 1)
    pure &= np.arange(8)[:, None] > 5
    assert pure.sum() > 10
    for name in ("normal", "albedo", "position", "uv", "median_depth"):
        ours, theirs = getattr(image, name), getattr(expected, name)
        np.testing.assert_allclose(ours[pure], theirs[pure], rtol=0.05, atol=0.05)


def test_nothing_is_needed_for_a_picture():
    floor = sg.Surface(sg.Plane(), sg.Lambert([0.5, 0.5, 0.5]))
    dark = sg.render(sg.Scene(sg.Group(floor=floor)), from_above(), sg.Path(samples=2))
    np.testing.assert_array_equal(dark.rgb, 0)
    nothing = sg.Scene(sg.Group(), background=[0.1, 0.2, 0.3])
    empty = sg.render(nothing, from_above(), sg.Path(samples=2))
    np.testing.assert_allclose(empty.rgb[0, 0], [0.1, 0.2, 0.3], rtol=1e-6)
    np.testing.assert_array_equal(empty.alpha, 0)


def test_roulette_changes_no_mean():
    shader = Glowing(EMISSION, sg.Lambert(ALBEDO))
    scene = sg.Scene(sg.Group(oven=sg.Surface(sg.Sphere(), shader)))
    path = sg.Path(samples=2000, bounces=8, roulette=True)
    image = sg.render(scene, inside(), path, key=KEY, outputs=["variance"])
    assert np.max(image.variance) > 0
    check_within_noise(image, EMISSION * sum(ALBEDO**k for k in range(10)))


def test_what_paths_do_not_do_is_refused():
    with pytest.raises(ValueError, match=r"`Path.samples` must be at least 1; got 0"):
        sg.Path(samples=0)
    with pytest.raises(ValueError, match=r"`Path.bounces` must be at least 0; got -1"):
        sg.Path(bounces=-1)
    fog = sg.Volume(sg.fields.ConstantFog(1.0, [1.0, 1.0, 1.0]))
    with pytest.raises(ValueError, match="does not integrate volumes, and there are 1"):
        sg.render(sg.Scene(sg.Group(fog=fog)), from_above(), sg.Path())
    floor = sg.Surface(sg.Plane(), sg.Lambert([0.5, 0.5, 0.5]))
    with pytest.raises(ValueError, match="at least 2 for `variance`"):
        sg.render(sg.Scene(sg.Group(floor=floor)), from_above(), sg.Path(1), outputs=["variance"])


def _lamps():
    edges = {"edge_u": [0.4, 0.0, 0.0], "edge_v": [0.0, -0.4, 0.0], "radiance": [9.0, 6.0, 3.0]}
    corners = [[-0.4, -0.4, 1.2], [0.4, -0.4, 1.2], [0.0, 0.6, 1.2], [0.0, 0.0, 1.6]]
    faces = [[0, 2, 1], [0, 1, 3], [1, 2, 3], [2, 0, 3]]
    return {
        "rectangle": sg.RectangleLight([0.2, 0.0, 1.2], **edges),
        "front": sg.RectangleLight([0.2, 0.0, 1.2], **edges, two_sided=False),
        "disk": sg.DiskLight([0.2, 0.0, 1.2], [0.0, 0.3, -1.0], 0.4, [9.0, 6.0, 3.0]),
        "sphere": sg.SphereLight([0.2, 0.1, 1.2], 0.4, [9.0, 6.0, 3.0]),
        "mesh": sg.MeshLight(corners, faces, [9.0, 6.0, 3.0]),
    }


@pytest.mark.parametrize("name", list(_lamps()))
def test_lamps_are_found_by_both_ways(name):
    lamp = _lamps()[name]
    camera = sg.PerspectiveCamera.look_at([0, 0, 0.5], [0, 0, 0], [0, 1, 0], 0.02, 8, 8)
    draw = lambda shader, **more: sg.render(
        sg.Scene(sg.Group(floor=sg.Surface(sg.Plane(), shader), **more)),
        camera,
        sg.Path(samples=1024, bounces=0),
        key=KEY,
        outputs=["variance"],
    )
    metal = sg.GGX([0.9, 0.6, 0.2], metallic=1.0, roughness=0.5)
    for shader in (sg.Lambert(ALBEDO), metal):
        # A surface of the same form is no lamp: only scattered rays find it.
        both = draw(shader, lamp=lamp)
        alone = draw(shader, lamp=_as_surface(lamp))
        error = np.sqrt(
            (np.mean(both.variance, axis=(0, 1)) + np.mean(alone.variance, axis=(0, 1))) / 64
        )
        mean = np.mean(alone.rgb, axis=(0, 1))
        assert np.all(error < 0.03 * np.max(mean))
        np.testing.assert_array_less(
            np.abs(np.mean(both.rgb, axis=(0, 1)) - mean), 4.5 * error + 1e-7
        )
        assert np.mean(both.variance) < np.mean(alone.variance)


class Shining(sg.shaders.AbstractShader):
    """The front of a lamp."""

    radiance: jax.Array = eqx.field(converter=jnp.asarray)
    two_sided: bool = eqx.field(static=True)

    def __call__(self, hit, view, lights):
        return jnp.where((hit.side > 0) | self.two_sided, self.radiance, 0)


def _as_surface(lamp):
    """A surface where a lamp is, with its colour."""
    body = lamp.body()
    surface = sg.Surface(body.shape, Shining(lamp.radiance, lamp.two_sided))
    return sg.Transformed(surface, sg.Affine(body.matrix, body.center))


def test_a_round_lamp_nearby_lights_a_point_in_full():
    # Rays that graze the lamp must not end at its own body.
    lamp = sg.SphereLight([0.0, 0.0, 1.0], 0.5, [9.0, 6.0, 3.0])
    floor = sg.Surface(sg.Plane(), sg.Lambert([0.8, 0.6, 0.4]))
    camera = sg.PerspectiveCamera.look_at([0.0, -1, 0.3], [0, 0, 0], [0, 0, 1], 0.001, 8, 8)
    path = sg.Path(samples=4096, bounces=0)
    scene = sg.Scene(sg.Group(floor=floor, lamp=lamp))
    image = sg.render(scene, camera, path, key=KEY, outputs=["variance"])
    # E = pi L (r / d)^2 straight below
    check_within_noise(image, 0.25 * np.array([9.0, 6.0, 3.0]) * [0.8, 0.6, 0.4])
    assert np.sqrt(np.mean(image.variance) / 64) < 1e-3
