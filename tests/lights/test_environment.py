"""What surfaces mirror of a panorama, against sums over their facets in numpy."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import scenegraph as sg
from scenegraph.flat._instances import stacked
from scenegraph.integrators._irradiance import received
from support.helpers import assert_close, assert_gradients
from support.shading import lit_hit


ROUGHNESSES = [0.0, 0.1, 0.3, 0.5, 0.8, 1.0]
METAL, PAINT = (0.97, 1.0), (0.8, 0.0)
COSINES = np.tile(np.linspace(0.1, 1, 10), 3)


def schlick(head_on, cosine):
    return head_on + (1 - head_on) * (1 - cosine) ** 5


def even_square(count):
    steps = (np.arange(count) + 0.5) / count
    return (x.ravel() for x in np.meshgrid(steps, steps))


def mirrored(alpha, eye, count=80):
    """Mirrored directions, by visible normals (Heitz 2018), with the factor `G2 / G1` and `v.h`."""
    part, turn = even_square(count)
    # Squared, so that the rare steep facets have small steps.
    weights, part = 2 * (1 - part), 1 - (1 - part) ** 2
    up = np.array([alpha * eye[0], 0, eye[2]])
    up /= np.linalg.norm(up)
    x, y = np.sqrt(part) * np.cos(2 * np.pi * turn), np.sqrt(part) * np.sin(2 * np.pi * turn)
    y = (1 - up[2]) / 2 * np.sqrt(1 - x**2) + (1 + up[2]) / 2 * y
    z = np.sqrt(np.maximum(1 - x**2 - y**2, 0))
    side = np.array([0.0, 1.0, 0.0])
    half = np.stack([x, y, z], -1) @ np.stack([side, np.cross(up, side), up])
    half = half * [alpha, alpha, 1]
    half /= np.linalg.norm(half, axis=-1, keepdims=True)
    meets = half @ eye
    light = 2 * meets[:, None] * half - eye
    lit = np.maximum(light[:, 2], 1e-9)
    shade = lambda c: (np.sqrt(1 + alpha**2 * (1 / c**2 - 1)) - 1) / 2
    open_part = (1 + shade(eye[2])) / (1 + shade(eye[2]) + shade(lit))
    return light, np.where(light[:, 2] > 0, open_part, 0) * weights, np.clip(meets, 0, 1)


def reference(material, roughness, cosine, radiance):
    """The light that GGX reflects; `radiance` takes directions where the normal is z."""
    base, metallic = material
    eye = np.array([np.sqrt(1 - cosine**2), 0, cosine])
    light, factor, meets = mirrored(max(roughness**2, 1e-3), eye)
    head_on = 0.04 + metallic * (base - 0.04)
    gloss = np.mean(factor * schlick(head_on, meets) * radiance(light))
    part, turn = even_square(60)
    around = np.sqrt(part) * np.stack([np.cos(2 * np.pi * turn), np.sin(2 * np.pi * turn)])
    light = np.stack([*around, np.sqrt(1 - part)], axis=-1)
    through = (1 - schlick(0.04, light[:, 2])) * (1 - schlick(0.04, cosine))
    return gloss + (1 - metallic) * base * np.mean(through * radiance(light))


def places():
    """Frames on surfaces, with the normal last, and views with the cosines."""
    rng = np.random.default_rng(0)
    frames = np.linalg.qr(rng.normal(size=(len(COSINES), 3, 3)))[0]
    eyes = np.stack([np.sqrt(1 - COSINES**2), 0 * COSINES, COSINES], axis=-1)
    return frames, -np.einsum("nij,nj->ni", frames, eyes)


FRAMES, VIEWS = places()


def directions(height, width):
    elevation = np.pi / 2 - np.pi * (np.arange(height) + 0.5) / height
    azimuth = -np.pi + 2 * np.pi * (np.arange(width) + 0.5) / width
    azimuth, elevation = np.meshgrid(azimuth, elevation)
    level = np.cos(elevation)
    return np.stack([level * np.cos(azimuth), level * np.sin(azimuth), np.sin(elevation)], -1)


def panorama(radiance, height=64, **options):
    texels = radiance(directions(height, 2 * height))
    return sg.EnvironmentLight(np.repeat(texels[..., None], 3, axis=-1), **options)


def light_of(light, normal, view, visible=None):
    sample = light.sample(jnp.zeros(3), jnp.zeros((2, 3)))
    arriving = sample.rays.view, sample.irradiance, sample.ambient
    arrays, rest = eqx.partition(jax.tree.map(jnp.asarray, light), eqx.is_array)
    node = jax.tree.map(lambda x: x[None], arrays)
    stack = stacked(sg.flat.Instance(node, None, None, jnp.zeros(1, jnp.int32)), rest)
    return received([stack], [sample.irradiance.shape[0]], *arriving, None, visible, normal, view)


@eqx.filter_jit
def shade(shader, light, normals, views):
    light = light.prepare()
    one = lambda normal, view: shader(lit_hit(normal), view, light_of(light, normal, view))
    return jax.vmap(one)(normals, views)


def shaded(shader, light):
    colors = shade(shader, light, jnp.asarray(FRAMES[:, :, 2]), jnp.asarray(VIEWS))
    return np.asarray(colors, float)[:, 0]


def references(material, roughness, radiance):
    return np.array(
        [
            reference(material, roughness, cosine, lambda x, frame=frame: radiance(x @ frame.T))
            for cosine, frame in zip(COSINES, FRAMES, strict=True)
        ]
    )


EVEN = lambda x: np.ones(x.shape[:-1])
SKIES = {
    "gradient": lambda x: 1 + 0.8 * x[..., 0] + 0.15 * x[..., 2],
    "bright half": lambda x: np.where(x[..., 1] + 0.3 * x[..., 2] > 0, 1.0, 0.1),
}


@pytest.mark.parametrize("roughness", ROUGHNESSES)
@pytest.mark.parametrize("material", [METAL, PAINT])
def test_a_white_sky(material, roughness):
    """Seen at all slants, surfaces show what their facets reflect of it."""
    base, metallic = material
    found = shaded(sg.GGX([base] * 3, metallic, roughness), panorama(EVEN))
    assert_close(found, references(material, roughness, EVEN), 0.02)


def test_a_white_sky_on_a_diffuse_surface():
    assert_close(shaded(sg.Lambert([0.5] * 3), panorama(EVEN)), np.full(len(COSINES), 0.5), 0.02)


@pytest.mark.parametrize("shininess", [3.0, 30.0, 300.0])
def test_a_white_sky_is_ambient_light(shininess):
    """Of one radiance: `Phong` reflects the same of both."""
    shader = sg.Phong([0.0] * 3, [1.0] * 3, shininess)
    ambient = sg.rays.Irradiance(jnp.zeros((0, 3)), jnp.zeros((0, 3)), jnp.ones(3))
    one = lambda normal, view: shader(lit_hit(normal), view, ambient)[0]
    expected = jax.jit(jax.vmap(one))(jnp.asarray(FRAMES[:, :, 2]), jnp.asarray(VIEWS))
    assert_close(shaded(shader, panorama(EVEN)), expected, 1e-4)


@pytest.mark.parametrize("sky", SKIES)
@pytest.mark.parametrize("material", [METAL, PAINT])
def test_an_uneven_sky(material, sky):
    base, metallic = material
    for roughness in ROUGHNESSES:
        found = shaded(sg.GGX([base] * 3, metallic, roughness), panorama(SKIES[sky]))
        expected = references(material, roughness, SKIES[sky])
        error = np.sqrt(np.mean((found - expected) ** 2) / np.mean(expected**2))
        assert error < 0.12, (roughness, error)


def test_frames_turn_what_is_mirrored():
    turn = sg.Similarity(rotation=[0.8, 0.5, 0.1, 0.3], scale=2.0)
    light = panorama(SKIES["gradient"], 8)
    normal, view = jnp.asarray(FRAMES[0, :, 2]), jnp.asarray(VIEWS[0])
    moved = [turn.direction(x) / 2 for x in (normal, view)]
    reflect = eqx.filter_jit(lambda light, *seen: light.reflect(*seen))
    assert_close(reflect(light.moved(turn), *moved), reflect(light, normal, view), 1e-4)


def test_shadows_darken_what_is_mirrored():
    """Where the lower half is covered, what is mirrored of it is dark."""
    light = eqx.filter_jit(lambda light: light.prepare())(panorama(EVEN, 8))
    rays = eqx.filter_jit(light.sample)(jnp.zeros(3), jnp.zeros((2, 3))).rays
    visible = jnp.where(rays.view[:, 2] > 0, 1.0, 0.0)
    normal = jnp.array([1.0, 0.0, 0.0])
    look = jax.jit(lambda view: light_of(light, normal, view, visible).glossy)
    glossy = lambda view: look(jnp.asarray(view))
    down, up = (glossy([-0.6, 0.0, z]) for z in (-0.8, 0.8))
    assert np.all(down < 0.1) and np.all(up > 0.9)


def test_gradients_by_texels(x64):
    texels = jnp.asarray(np.random.default_rng(1).uniform(size=(5, 7, 3)))
    normal, view = jnp.asarray(FRAMES[4, :, 2]), jnp.asarray(VIEWS[4])

    def look(texels, roughness, view):
        light = sg.EnvironmentLight(texels).prepare()
        return sg.GGX([0.9, 0.5, 0.3], 0.5, roughness)(
            lit_hit(normal), view, light_of(light, normal, view)
        )

    assert_gradients(look, texels, jnp.asarray(0.41), view)


def test_looking_at_the_poles_has_finite_gradients():
    light, up = panorama(SKIES["gradient"], 8), jnp.array([0.0, 0.0, 1.0])
    slope = jax.jit(jax.jacobian(lambda normal: light.prepare().reflect(normal, -up)))
    for normal in (up, -up):
        assert np.all(np.isfinite(slope(normal)))
