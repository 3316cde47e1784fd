"""Highlights of lamps with a size, against sums over many small parts of the lamps."""

import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import scenegraph as sg
from scenegraph.rays import Irradiance, LampPolygons
from scenegraph.shaders._ltc import lobe_part
from support import fit_ltc
from support.helpers import assert_close, assert_finite_gradients, assert_gradients
from support.shading import lit_hit, UP


PARTS = 64


def eye_at(cosine):
    return np.array([0.8 * np.sqrt(1 - cosine**2), 0.6 * np.sqrt(1 - cosine**2), cosine])


def rectangles(eye, size, count, seed=0):
    """Centres and half edges of lamps about where the mirrored eye looks, at a distance of one."""
    rng = np.random.default_rng(seed)
    mirrored = 2 * eye[2] * UP - eye
    directions = mirrored + (0.2 + size) * rng.normal(size=(count, 3))
    directions[:, 2] = np.abs(directions[:, 2])
    lamps = []
    for direction in directions / np.linalg.norm(directions, axis=1)[:, None]:
        normal = -direction + 0.4 * rng.normal(size=3)
        u = np.cross(normal, rng.normal(size=3))
        v = np.cross(normal, u)
        half = size * rng.uniform(0.5, 1, 2)
        edges = [x * h / np.linalg.norm(x) for x, h in zip((u, v), half, strict=True)]
        # Counterclockwise as seen from the origin.
        turned = np.dot(np.cross(*edges), direction) > 0
        lamps.append([direction, *(edges[::-1] if turned else edges)])
    return np.array(lamps)


def corners_of(lamps):
    around = np.array([[1, 1], [-1, 1], [-1, -1], [1, -1]])
    return lamps[:, :1] + np.einsum("ck,lkx->lcx", around, lamps[:, 1:])


@eqx.filter_jit
def seen(shader, eye, corners):
    """The light of each lamp alone, of radiance one, in highlights."""

    def one(corners):
        lamps = LampPolygons(corners[None], jnp.ones((1, 3), corners.dtype))
        none = jnp.zeros((1, 3), corners.dtype)
        lights = Irradiance(none + jnp.asarray(UP, none.dtype), none, none[0], lamps=lamps)
        return shader(lit_hit(), -eye, lights)

    return jax.vmap(one)(corners)


@eqx.filter_jit
def summed(shader, eye, lamps):
    """The same of small parts: `scatter` times the solid angle of each."""
    steps = (2 * jnp.arange(PARTS) + 1) / PARTS - 1

    def one(lamp):
        center, u, v = lamp
        place = center + steps[:, None, None] * u + steps[:, None] * v
        normal = jnp.cross(u, v)

        def part(place):
            distance = jnp.linalg.norm(place)
            # dA cos / d^2, with dA = 4 |u x v| / parts^2
            solid = 4 / PARTS**2 * jnp.abs(normal @ place) / distance**3
            return shader.scatter(lit_hit(), -eye, place / distance) * solid

        return jnp.sum(jax.vmap(part)(place.reshape(-1, 3)), axis=0)

    return jax.lax.map(one, lamps)


def errors(shader, cosine, size, count=16):
    """The mean error, by the mean."""
    eye = eye_at(cosine)
    lamps = rectangles(eye, size, count)
    eye, lamps, corners = (jnp.asarray(x, jnp.float32) for x in (eye, lamps, corners_of(lamps)))
    ours, truth = seen(shader, eye, corners), summed(shader, eye, lamps)
    return float(jnp.mean(jnp.abs(ours - truth)) / jnp.mean(truth))


ROUGH = [0.2, 0.35, 0.5, 0.7, 1.0]


@pytest.mark.parametrize("roughness", ROUGH)
def test_metal(roughness):
    """Half edges up to 0.02, 0.1, 0.3 and 1 times the distance; the eye above, and at a slant."""
    metal = sg.GGX([0.9, 0.6, 0.3], 1.0, roughness)
    for cosine in (1.0, 0.7, 0.4):
        assert errors(metal, cosine, 0.02) < 0.002
        assert errors(metal, cosine, 0.1) < 0.012
        assert errors(metal, cosine, 0.3) < 0.025
        assert errors(metal, cosine, 1.0) < 0.045


@pytest.mark.parametrize("roughness", [0.2, 0.5])
def test_others(roughness):
    """Of what reflects more at a slant, or has another lobe, large lamps are less exact."""
    black, power = sg.GGX([0.0] * 3, 0.0, roughness), (2 / roughness**4 - 2) / 4
    phong = sg.Phong([0.0] * 3, [0.5] * 3, power)
    for shader, bounds in ((black, (0.002, 0.04, 0.12)), (phong, (0.005, 0.1, 0.1))):
        for cosine in (1.0, 0.7):
            for size, bound in zip((0.02, 0.3, 1.0), bounds, strict=True):
                assert errors(shader, cosine, size) < bound


SQUARE = np.array([[1.0, 1, 1], [1, -1, 1], [-1, -1, 1], [-1, 1, 1]]) * [0.1, 0.1, 1]

AROUND = SQUARE * [10, 10, 1e-4]


def test_parts_of_a_lobe():
    """A polygon all around the surface fills all of the lobe, and its parts add up to it."""
    up = jnp.asarray(UP, jnp.float32)
    cut, rest = AROUND.copy(), AROUND.copy()
    cut[2:, 0] = rest[:2, 0] = 0.3

    @jax.jit
    def part(eye, roughness, corners):
        return lobe_part(up, jnp.asarray(eye, up.dtype), roughness, jnp.asarray(corners, up.dtype))

    for roughness in (0.1, 0.5, 1.0):
        for cosine in (0.1, 0.7, 1.0):
            asked = eye_at(cosine), roughness
            assert abs(part(*asked, AROUND) - 1) < 1e-3
            assert abs(part(*asked, cut) + part(*asked, rest) - part(*asked, AROUND)) < 1e-4
            assert part(*asked, AROUND[::-1]) == 0 and part(*asked, AROUND * [1, 1, -1]) == 0
            assert part(*asked, AROUND[::-1] * [1, 1, -1]) == 0
    # A mirror shows the lamp, or does not.
    eye, mirrored = eye_at(0.7), eye_at(0.7) * [-1, -1, 1]
    beside = SQUARE - [0, 0, 1]
    assert part(eye, 0.0, beside + mirrored) > 0.98
    assert part(eye, 0.0, beside + mirrored + [0.3, 0, 0]) < 0.01


def test_the_part_of_even_light(x64):
    """A lamp all around is ambient light."""
    around = jnp.asarray([AROUND])
    for shader in (sg.GGX([0.9, 0.6, 0.3], 1.0, 0.4), sg.Phong([0.0] * 3, [0.5] * 3)):
        eye = jnp.asarray(eye_at(0.6))
        none = jnp.zeros((0, 3))
        ambient = shader(lit_hit(), -eye, Irradiance(none, none, jnp.ones(3)))
        assert_close(seen(shader, eye, around)[0], ambient, 1e-3)


@pytest.mark.parametrize("shader", [sg.GGX([0.9, 0.6, 0.3], 0.5, 0.4), sg.Phong()])
def test_a_tiny_lamp_is_a_point(x64, shader):
    """With the light of its direction, too, which is what scatters evenly."""
    eye, toward = jnp.asarray(eye_at(0.7)), np.array([-0.5, 0.3, 0.8])
    corners = jnp.asarray(1e-3 * (SQUARE - [0, 0, 1]) + toward)
    # dA cos / d^2, of a square whose half edges are 1e-4.
    distance = np.linalg.norm(toward)
    power = np.full((1, 3), 4e-8 * toward[2] / distance**3)
    direction = jnp.asarray(toward[None] / distance)
    lamps = LampPolygons(corners[None], jnp.ones((1, 3)))
    none = jnp.zeros(3)
    point = Irradiance(direction, jnp.asarray(power), none)
    sized = Irradiance(direction, jnp.asarray(power), none, lamps=lamps)
    assert_close(shader(lit_hit(), -eye, sized), shader(lit_hit(), -eye, point), 1e-4)


def test_corners_may_repeat():
    """A triangle is a square of which two corners are one, and a lamp may have more of them."""
    eye = jnp.asarray(eye_at(0.7), jnp.float32)
    shader = sg.GGX([0.9, 0.6, 0.3], 0.5, 0.4)
    triangle = jnp.asarray(SQUARE[:3] + [-0.3, 0, 0], jnp.float32)
    alone = seen(shader, eye, triangle[None])
    for order in ([0, 1, 2, 2], [0, 0, 1, 2, 2], [2, 2, 2, 0, 1]):
        assert_close(seen(shader, eye, triangle[jnp.array(order)][None]), alone, 1e-4)


def test_lamps_stand_between_points_and_panoramas():
    """Only the lamp's own direction makes no highlight, and its even light is that of a point."""
    rng = np.random.default_rng(0)
    directions = eye_at(0.7) * [-1, -1, 1] + 0.1 * rng.normal(size=(3, 3))
    directions /= np.linalg.norm(directions, axis=1)[:, None]
    directions, powers = jnp.asarray(directions, jnp.float32), jnp.asarray([[1.0], [2.0], [3.0]])
    powers = jnp.broadcast_to(powers, (3, 3)) * jnp.asarray([1.0, 0.5, 0.2])
    dark = LampPolygons(jnp.asarray(SQUARE[None], jnp.float32), jnp.zeros((1, 3)))
    zero, glossy = jnp.zeros(3), jnp.zeros((9, 3))
    eye = jnp.asarray(eye_at(0.7), jnp.float32)
    for shader in (sg.GGX([0.9, 0.6, 0.3], 0.3, 0.4, occlusion=0.5), sg.Phong()):
        look = functools.partial(shader, lit_hit(), -eye)
        whole = Irradiance(directions, powers, zero, glossy, 1, dark)
        # Of a point, the light that is reflected evenly is that of the same shader without gloss.
        parts = [Irradiance(directions[i : i + 1], powers[i : i + 1], zero) for i in range(3)]
        sharp = look(parts[0])
        lamp = look(eqx.tree_at(lambda x: x.lamps, parts[1], dark, is_leaf=lambda x: x is None))
        soft = look(Irradiance(directions[2:], powers[2:], zero, glossy, 1))
        assert_close(look(whole), sharp + lamp + soft, 1e-6)
        assert np.all(lamp < look(parts[1]))
    # Occlusion is of ambient light and panoramas alone.
    free = sg.GGX([0.9, 0.6, 0.3], 0.3, 0.4)
    lights = eqx.tree_at(lambda x: x.lamps, parts[1], dark, is_leaf=lambda x: x is None)
    half = sg.GGX([0.9, 0.6, 0.3], 0.3, 0.4, occlusion=0.5)
    assert_close(half(lit_hit(), -eye, lights), free(lit_hit(), -eye, lights))


# --- Derivatives


@pytest.mark.slow
def test_gradients(x64):
    def look(base, roughness, eye, corners, radiance):
        lamps = LampPolygons(corners, radiance)
        none = jnp.zeros((len(corners), 3))
        lights = Irradiance(none + jnp.asarray(UP, none.dtype), none, none[0], lamps=lamps)
        eye = eye / jnp.linalg.norm(eye)
        every = sg.GGX(base, 0.6, roughness), sg.Phong(base, base, 20.0)
        return [shader(lit_hit(), -eye, lights) for shader in every]

    lifted = SQUARE + [-0.5, -0.3, 0.1]
    sinking = np.array([[0.4, -0.3, -0.3], [-0.8, -0.2, -0.4], [-0.6, 0.3, 0.5], [0.5, 0.2, 0.4]])
    arguments = [0.9, 0.6, 0.3], 0.37, eye_at(0.6), [lifted, 2 * sinking], [[1.0, 2, 3]] * 2
    assert_gradients(look, *(jnp.asarray(x, float) for x in arguments))


POLYGONS = {
    "plain": SQUARE,
    "of no size": np.tile([[0.3, 0.2, 0.5]], (4, 1)),
    "at the point": np.zeros((4, 3)),
    "one corner at the point": SQUARE * [[1], [1], [1], [0]],
    "a line": SQUARE * [1, 0, 1],
    "in the surface": SQUARE * [1, 1, 0],
    "below": SQUARE * [1, -1, -1],
    "edge in the surface": SQUARE * [[1, 1, 0], [1, 1, 0], [1, 1, 1], [1, 1, 1]],
    "corner in the surface": SQUARE * [[1, 1, 0], [1, 1, 1], [1, 1, 1], [1, 1, 1]],
    "across the surface": SQUARE * [1, 1, 0] + [[0, 0, 1], [0, 0, -1], [0, 0, -1], [0, 0, 1]],
    "far and large": 1e4 * SQUARE,
    "tiny": 1e-6 * SQUARE,
}


def test_finite_derivatives():
    """For lamps in, on and behind the surface, seen from everywhere, smooth and rough."""
    corners = jnp.asarray(np.stack(list(POLYGONS.values()))[:, None], jnp.float32)
    eyes = jnp.asarray([UP, eye_at(0.7), eye_at(0.0), eye_at(-0.1)], jnp.float32)

    roughnesses = jnp.asarray([0.0, 0.5, 1.0], jnp.float32)

    def look(roughness, eye, corners):
        lamps = LampPolygons(corners, jnp.ones((1, 3), corners.dtype))
        none = jnp.zeros((1, 3), corners.dtype)
        lights = Irradiance(none + jnp.asarray(UP, none.dtype), none, none[0], lamps=lamps)
        every = sg.GGX([0.5] * 3, 0.5, roughness), sg.Phong()
        return [shader(lit_hit(), -eye, lights) for shader in every]

    everywhere = jax.vmap(jax.vmap(look, (None, None, 0)), (None, 0, None))
    assert_finite_gradients(jax.vmap(everywhere, (0, None, None)), roughnesses, eyes, corners)


# --- The table


@pytest.mark.parametrize(("row", "column"), [(16, 20), (29, 6)])
def test_the_table_is_what_the_script_fits(row, column):
    roughnesses, cosines = fit_ltc.axis_values()
    table = np.load(fit_ltc.TABLE)
    start = np.array([1 - roughnesses[row] ** 2, 1.0, 1.0])
    fitted = fit_ltc.fit(roughnesses[row], cosines[column], start)
    assert table.shape == (fit_ltc.POINTS, fit_ltc.POINTS, 3)
    np.testing.assert_allclose(table[row, column], fitted, atol=2e-3)
