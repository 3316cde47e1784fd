"""The inputs of GGX: numbers or shaders, bumps, own light and occlusion."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import scenegraph as sg
from scenegraph.flat import flatten, intersect
from scenegraph.rays import Hit, Irradiance, no_light
from support.helpers import assert_close, assert_gradients
from support.shading import upper_directions


RNG = np.random.default_rng(3)
BASE = [0.7, 0.4, 0.2]
EYES, LAMPS = upper_directions(12, 1), upper_directions(12, 2)
SLOPES = np.array([[0.02, 0.005], [-0.004, 0.03]])


def hit_at(uv, normal=(0.0, 0, 1), side=1.0, maps=np.eye(2)):
    """A hit in the plane z = 0 whose coordinates are `maps @ (x, y)`."""
    d_point = np.concatenate([SLOPES, np.zeros((2, 1))], axis=1)
    return Hit(
        1.0,
        jnp.zeros(3),
        jnp.asarray(normal),
        jnp.asarray(uv),
        jnp.asarray(SLOPES @ np.asarray(maps).T),
        1.0,
        d_point=jnp.asarray(d_point),
        side=jnp.asarray(side),
    )


def light(lamps, ambient=0.3):
    lamps = jnp.atleast_2d(jnp.asarray(lamps))
    power = jnp.ones((len(lamps), 3), lamps.dtype) * jnp.asarray([1.0, 0.8, 0.5], lamps.dtype)
    return Irradiance(lamps, power, jnp.full(3, ambient, lamps.dtype))


@eqx.filter_jit
def seen(shader, hit, lights=None):
    """For many directions to the eye."""
    lights = light(LAMPS) if lights is None else lights
    return jax.vmap(lambda eye: shader(hit, -eye, lights))(jnp.asarray(EYES, jnp.float32))


def texture(texels, **options):
    return sg.ImageTexture(jnp.asarray(texels), corner=[0.0, 0.0], repeat=True, **options)


HIT = hit_at([0.3, 0.6])


# --- Numbers and shaders


def test_constant_shaders_equal_numbers():
    numbers = seen(sg.GGX(BASE, 0.3, 0.4, occlusion=0.7), HIT)
    as_color = lambda x: sg.shaders.Constant([x] * 3)
    constants = sg.GGX(BASE, as_color(0.3), as_color(0.4), occlusion=as_color(0.7))
    np.testing.assert_array_equal(seen(constants, HIT), numbers)
    flat = lambda x: texture(np.full((4, 8, 1), x, np.float32))
    textures = sg.GGX(BASE, flat(0.3), flat(0.4), occlusion=flat(0.7))
    assert_close(seen(textures, HIT), numbers, 2e-6)


def test_numbers_stay_leaves():
    names = [
        path for path, _, _ in sg.scene.named_leaves(sg.Scene(sg.Surface(sg.Sphere(), sg.GGX())))
    ]
    ours = sorted(name for name in names if name.startswith("shader"))
    assert ours == ["shader.base_color.color", "shader.metallic", "shader.roughness"]


def test_channels_are_those_of_gltf():
    """Red is occlusion, green roughness, blue metallic, of one texture."""
    packed = texture(np.tile(np.float32([0.7, 0.4, 0.3]), (4, 4, 1)))
    whole = sg.GGX(BASE, packed, packed, occlusion=packed)
    assert_close(seen(whole, HIT), seen(sg.GGX(BASE, 0.3, 0.4, occlusion=0.7), HIT), 2e-6)


def test_a_pattern_is_an_input():
    rough = sg.Checker(0.5, [0.2] * 3, [0.8] * 3)
    for uv, number in (([0.3, 0.2], 0.2), ([0.7, 0.2], 0.8)):
        assert_close(
            seen(sg.GGX(BASE, 0.0, rough), hit_at(uv)), seen(sg.GGX(BASE, 0.0, number), HIT)
        )


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"metallic": [0.5] * 3}, "TypeError"),
        ({"roughness": sg.shaders.Constant([1.5] * 3)}, "GGX.roughness` must be between 0 and 1"),
        ({"occlusion": -0.5}, "GGX.occlusion` must be between 0 and 1"),
    ],
)
def test_what_is_refused(options, words):
    with pytest.raises((TypeError, ValueError)) as caught:
        sg.GGX(BASE, **options)
    assert words in f"{caught.type.__name__}: {caught.value}"


def test_coordinates_are_wanted_where_the_shape_has_none():
    ball = sg.SignedDistance.from_grid(np.ones((3, 3, 3)), [-1.0] * 3, [1.0] * 3)
    with pytest.raises(ValueError, match="which a SignedDistance does not have"):
        sg.Surface(ball, sg.GGX(roughness=texture(np.ones((2, 2, 1)))))
    with pytest.raises(ValueError, match="NormalMap"):
        sg.Surface(ball, sg.GGX(normal_map=[0.5, 0.5, 1.0]))


# --- Emission and occlusion


def test_emission_adds():
    glow = texture(RNG.uniform(0, 3, (4, 4, 3)).astype(np.float32))
    plain, bright = sg.GGX(BASE, 0.3, 0.4), sg.GGX(BASE, 0.3, 0.4, emission=glow)
    own = glow(HIT, jnp.ones(3), no_light())
    assert_close(seen(bright, HIT), seen(plain, HIT) + own, 1e-6)
    dark = no_light(jnp.float32)
    assert_close(seen(bright, HIT, dark), np.broadcast_to(own, (12, 3)), 1e-6)


def test_a_glowing_surface_needs_no_light():
    camera = sg.PerspectiveCamera.look_at([0.0, 0, 3], [0.0, 0, 0], [0.0, 1, 0], 0.3, 4, 4)
    lamp = sg.Surface(sg.Rectangle(), sg.GGX(BASE, emission=[0.2, 0.4, 0.6]))
    image = sg.render(sg.Scene(sg.Group(lamp=lamp)), camera)
    assert_close(image.rgb, np.broadcast_to(np.float32([0.2, 0.4, 0.6]), (4, 4, 3)), 1e-5)


def test_occlusion_dims_ambient_light_alone():
    plain, shaded = sg.GGX(BASE, 0.3, 0.4), sg.GGX(BASE, 0.3, 0.4, occlusion=0.25)
    direct = seen(plain, HIT, light(LAMPS, 0.0))
    assert_close(seen(shaded, HIT, light(LAMPS, 0.0)), direct, 1e-6)
    ambient = seen(plain, HIT) - direct
    assert_close(seen(shaded, HIT), direct + 0.25 * ambient, 1e-5)


# --- Bumps


def tilted(normal) -> np.ndarray:
    """The colour in a normal map."""
    return np.asarray(normal) / np.linalg.norm(normal) / 2 + 0.5


def test_a_flat_map_is_none():
    flat = sg.GGX(BASE, 0.3, 0.4, normal_map=[0.5, 0.5, 1.0])
    assert isinstance(flat.normal_map, sg.shaders.NormalMap)
    high = light(LAMPS[LAMPS[:, 2] > 0.05])
    assert_close(seen(flat, HIT, high), seen(sg.GGX(BASE, 0.3, 0.4), HIT, high), 1e-6)


TILT = np.array([0.3, -0.2, 1.0]) / np.linalg.norm([0.3, -0.2, 1.0])


def test_a_map_is_a_tilted_plane():
    bumpy = sg.GGX(BASE, 0.3, 0.4, normal_map=tilted(TILT))
    high = light(LAMPS[LAMPS[:, 2] > 0.05])
    plane = seen(sg.GGX(BASE, 0.3, 0.4), hit_at([0.3, 0.6], TILT), high)
    assert_close(seen(bumpy, HIT, high), plane, 2e-5)


@pytest.mark.parametrize("mirrored", [False, True])
@pytest.mark.parametrize("side", [1.0, -1.0])
def test_normals_are_those_of_a_height(mirrored, side):
    """Of the plane z = h(x, y), whatever way its coordinates run, and seen from both sides."""
    slope, angle = np.array([0.4, -0.3]), 0.7
    maps = 2.5 * np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
    maps[0] *= -1 if mirrored else 1
    # In units of length along u and v: dh/du and dh/dv.
    along = 2.5 * np.linalg.solve(maps.T, slope)
    bumps = sg.shaders.NormalMap(tilted([-along[0], -along[1], 1]))
    hit = hit_at([0.1, 0.2], [0.0, 0.0, side], side, maps)
    outward = np.array([-slope[0], -slope[1], 1]) / np.linalg.norm([*slope, 1])
    assert_close(bumps(hit, jnp.ones(3), no_light()), side * outward, absolute=1e-6)


def test_scale_is_of_the_parts_across():
    bumps = sg.shaders.NormalMap(tilted([0.3, -0.2, 1]), 0.5)
    expected = np.array([0.15, -0.1, 1]) / np.linalg.norm([0.15, -0.1, 1])
    assert_close(bumps(HIT, jnp.ones(3), no_light()), expected, absolute=1e-6)


def test_light_from_behind_the_surface_does_not_count():
    bumpy = sg.GGX(BASE, 0.3, 0.4, normal_map=tilted([1.0, 0, 1]))
    below = light([0.999, 0.0, -0.0447], 0.0)
    assert np.all(np.asarray(seen(bumpy, HIT, below)) == 0)


def test_a_surface_without_coordinates_has_no_bumps():
    bumps = sg.shaders.NormalMap(tilted([0.3, -0.2, 1]))
    hit = eqx.tree_at(lambda x: x.duv, HIT, jnp.zeros((2, 2)))
    assert_close(bumps(hit, jnp.ones(3), no_light()), [0, 0, 1], absolute=1e-6)


QUAD = sg.TriangleMesh(
    [[-1.0, -1, 0], [1, -1, 0], [1, 1, 0], [-1, 1, 0]],
    [[0, 1, 2], [0, 2, 3]],
    uv=[[0.0, 0], [1, 0], [1, 1], [0, 1]],
)


def visible(hits):
    return jax.tree.map(lambda x: x[jnp.argmax(hits.coverage)], hits)


@pytest.mark.parametrize("shape", [sg.Rectangle(size=[2.0, 2]), QUAD, sg.Sphere(), sg.Box()])
@pytest.mark.parametrize("mirrored", [False, True])
def test_hits_say_their_side(shape, mirrored):
    """From outside and from inside, also in a mirrored frame."""
    scale = sg.Affine(np.diag([-1.0 if mirrored else 1, 1, 1]), [0.0, 0, 0])
    node = sg.Transformed(sg.Surface(shape, [0.5] * 3), scale)
    still = jnp.full((2, 3), 1e-3) * jnp.asarray([[1.0, 0, 0], [0, 1, 0]])
    for height, direction, side in ((3.0, -1.0, 1), (0.0 if shape.is_convex else -3.0, 1.0, -1)):
        if isinstance(shape, sg.Rectangle) and side < 0:
            height = -3.0
        ray = sg.rays.Ray(
            jnp.asarray([0.1, 0.2, height]),
            jnp.asarray([0.0, 0, direction]),
            jnp.asarray([0.0, 0, direction]),
            still,
            0 * still,
            1e-3,
            10.0,
        )
        flat = flatten(sg.Scene(sg.Group(it=node)))
        if flat.triangles is not None:
            hit = visible(jax.jit(lambda ray: shape.parts(ray))(ray))
        else:
            hit = visible(jax.jit(intersect)(flat.surfaces[0].first(), ray))
        assert float(hit.side) == side
        assert float(hit.normal[2]) == pytest.approx(-direction, abs=0.3)


@pytest.mark.slow
def test_bumps_of_a_mesh_in_a_picture():
    """A quad with the map of a tilt is as bright as the tilt says, from both sides."""
    tilt = np.array([0.3, 0.2, 1]) / np.linalg.norm([0.3, 0.2, 1])
    chalk = sg.GGX([0.8] * 3, 0.0, 1.0, normal_map=tilted(tilt))
    lamps = sg.Group(
        front=sg.DirectionalLight([0.0, 0, -1], [3.0] * 3),
        back=sg.DirectionalLight([0.3, 0, 1], [2.0] * 3),
    )
    scene = sg.Scene(sg.Group(quad=sg.Surface(QUAD, chalk), lamps=lamps))
    for height in (4.0, -4.0):
        camera = sg.PerspectiveCamera.look_at([0.0, 0, height], [0.0, 0, 0], [0.0, 1, 0], 0.1, 2, 2)
        image = sg.render(scene, camera)
        side = np.sign(height)
        toward = np.array([0.0, 0, 1]) if side > 0 else -np.array([0.3, 0, 1]) / np.hypot(0.3, 1)
        lights = Irradiance(toward[None], np.full((1, 3), 3.0 if side > 0 else 2.0), jnp.zeros(3))
        plain = sg.GGX([0.8] * 3, 0.0, 1.0)
        expected = plain(hit_at([0.5, 0.5], side * tilt), jnp.asarray([0.0, 0, -side]), lights)
        assert_close(image.rgb, np.broadcast_to(expected, (2, 2, 3)), 1e-2)


# --- Gradients


@pytest.mark.slow
def test_gradients_reach_every_texel(x64):
    sizes = {"packed": 3, "normal": 3}
    texels = {name: RNG.uniform(0.3, 0.7, (3, 4, n)) for name, n in sizes.items()}
    texels["normal"][..., 2] += 0.3
    wide = hit_at([0.3, 0.6])
    wide = eqx.tree_at(lambda x: x.duv, wide, 20 * wide.duv)

    def look(packed, normal, scale):
        packed, normal = texture(packed, probes=1), texture(normal, probes=1)
        bumps = sg.shaders.NormalMap(normal, scale)
        shader = sg.GGX(BASE, packed, packed, bumps, occlusion=packed)
        return shader(wide, -jnp.asarray([0.2, 0.1, 0.97]), light(LAMPS[:2]))

    values = [jnp.asarray(texels[name]) for name in sizes]
    assert_gradients(look, *values, jnp.asarray(0.8))
    slopes = jax.jit(jax.jacobian(look, (0, 1)))(*values, jnp.asarray(0.8))
    for slope in slopes:
        assert np.all(np.any(np.asarray(slope) != 0, axis=(0, -1)))
