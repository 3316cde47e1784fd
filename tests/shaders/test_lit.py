"""Lit shaders against their formulas in numpy, and against sums over all directions of light."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import scenegraph as sg
from support.helpers import assert_close, assert_finite_gradients, assert_gradients
from support.shading import lit_color, lit_colors, lit_hit, UP, upper_directions


COUNT = 40
LIGHTS, EYES = upper_directions(COUNT, 1), upper_directions(COUNT, 2)
BASE = np.array([0.7, 0.4, 0.2])
GLOSS = np.array([0.2, 0.3, 0.1])


def seen(shader, lights=LIGHTS, eyes=EYES):
    return np.asarray(lit_colors(shader, jnp.asarray(lights), jnp.asarray(eyes)), float)


# --- The formulas, vector by vector


def lambert(light, eye):
    return BASE / np.pi * light[2]


def phong(light, eye, n=20.0):
    mirrored = 2 * light[2] * UP - light
    lobe = (n + 2) / (2 * np.pi) * max(mirrored @ eye, 0) ** n
    return (BASE / np.pi + GLOSS * lobe) * light[2]


def schlick(head_on, cosine):
    return head_on + (1 - head_on) * (1 - cosine) ** 5


def ggx(light, eye, metallic=0.3, roughness=0.4):
    """With the usual density, shadowing and Fresnel term, each on its own."""
    half = (light + eye) / np.linalg.norm(light + eye)
    squared = max(roughness**2, 1e-3) ** 2
    density = squared / (np.pi * (half[2] ** 2 * (squared - 1) + 1) ** 2)
    shade = lambda c: (np.sqrt(1 + squared * (1 / c**2 - 1)) - 1) / 2
    shadowing = 1 / (1 + shade(light[2]) + shade(eye[2]))
    fresnel = schlick(0.04 * (1 - metallic) + metallic * BASE, half @ eye)
    mirrors = density * shadowing * fresnel / (4 * light[2] * eye[2])
    through = (1 - schlick(0.04, light[2])) * (1 - schlick(0.04, eye[2]))
    return ((1 - metallic) * BASE * through / np.pi + mirrors) * light[2]


CASES = {
    "lambert": (sg.Lambert(BASE), lambert),
    "phong": (sg.Phong(BASE, GLOSS, 20), phong),
    "ggx": (sg.GGX(BASE, 0.3, 0.4), ggx),
    "smooth": (sg.GGX(BASE, 1.0, 0.1), lambda l, e: ggx(l, e, 1.0, 0.1)),
}
every_case = pytest.mark.parametrize("case", CASES)


@every_case
def test_the_formula(case):
    shader, formula = CASES[case]
    expected = np.stack([formula(*pair) for pair in zip(LIGHTS, EYES, strict=True)])
    assert_close(seen(shader), expected, 1e-4)


@every_case
def test_light_and_eye_may_change_places(case):
    shader, _ = CASES[case]
    there = seen(shader) / LIGHTS[:, 2:]
    assert_close(there, seen(shader, EYES, LIGHTS) / EYES[:, 2:], 1e-4)


# --- Energy


@eqx.filter_jit
def reflectance(shader, eyes, lights):
    """The part of a direction's light that leaves in all directions; by reciprocity it is seen."""
    one = lambda eye: jnp.mean(jax.vmap(lambda l: lit_color(shader, l, eye))(lights), axis=0)
    return 2 * jnp.pi * jax.vmap(one)(eyes)[:, 0]


@eqx.filter_jit
def evenly_lit(shader, eyes):
    return jax.vmap(lambda eye: lit_color(shader, -UP, eye, ambient=1.0)[0])(eyes)


def slanted(cosines):
    cosines = np.asarray(cosines)
    return jnp.asarray(np.stack([np.sqrt(1 - cosines**2), 0 * cosines, cosines], -1))


def even_directions(count=200):
    """A grid that is even in the solid angle."""
    height = (np.arange(count) + 0.5) / count
    around = 2 * np.pi * (np.arange(2 * count) + 0.5) / (2 * count)
    height, around = (x.ravel() for x in np.meshgrid(height, around))
    across = np.sqrt(1 - height**2)
    return jnp.asarray(np.stack([across * np.cos(around), across * np.sin(around), height], -1))


COSINES = [0.05, 0.2, 0.5, 0.8, 1.0]
WHITES = {
    "phong-3": sg.Phong([0, 0, 0], [1, 1, 1], 3),
    "phong-50": sg.Phong([0.5, 0.5, 0.5], [0.5, 0.5, 0.5], 50),
    **{
        f"ggx-{metallic}-{roughness}": sg.GGX([1, 1, 1], metallic, roughness)
        for metallic in (0, 0.5, 1)
        for roughness in (0.3, 0.6, 1.0)
    },
}


@pytest.mark.parametrize("name", WHITES)
def test_no_more_light_leaves_than_arrives(name):
    """Nor does a white surface swallow much of what comes head on."""
    parts = np.asarray(reflectance(WHITES[name], slanted(COSINES), even_directions()))
    assert np.all(parts <= 1.02)
    assert parts[-1] > 0.3


@pytest.mark.parametrize("name", WHITES)
def test_ambient_light_is_light_from_all_sides(name):
    parts = reflectance(WHITES[name], slanted(COSINES), even_directions())
    look = lambda shader, eye: lit_color(shader, -UP, eye, ambient=1.0)[0]
    ambient = eqx.filter_jit(eqx.filter_vmap(look, in_axes=(None, 0)))(
        WHITES[name], slanted(COSINES)
    )
    # Of smooth surfaces at a slant, the sum over directions itself is off by 0.02.
    assert_close(ambient, parts, 0, 0.04 if name.startswith("phong") else 0.03)
    assert np.all(ambient <= 1.02)


def test_lambert_sends_back_its_albedo():
    parts = reflectance(sg.Lambert(BASE), slanted(COSINES), even_directions())
    assert_close(parts, np.full(len(COSINES), BASE[0]), 1e-3)


# --- Nesting


@eqx.filter_jit
def ask(shader, hit, view, lights):
    return shader(hit, view, lights)


@pytest.mark.parametrize("kind", [sg.Lambert, sg.Phong, sg.GGX])
def test_colours_may_be_patterns(kind):
    hit = sg.rays.Hit(1.0, UP, UP, jnp.array([1.5, 0.5]), jnp.zeros((2, 2)), 1.0)
    lights = sg.rays.Irradiance(UP[None], jnp.ones((1, 3)), jnp.zeros(3))
    checked, plain = kind(sg.Checker(1.0, GLOSS, BASE)), kind(BASE)
    down = jnp.array([0.0, 0.6, -0.8])
    assert_close(ask(checked, hit, down, lights), ask(plain, hit, down, lights), 1e-6)


@pytest.mark.parametrize("kind", [sg.Lambert, sg.Phong, sg.GGX])
def test_black_without_light(kind):
    """None at all, or one behind the surface."""
    assert kind.needs_light
    color = ask(kind(BASE), lit_hit(), -jnp.asarray(UP), sg.rays.no_light())
    assert_close(color, np.zeros(3))
    behind = seen(kind(BASE), np.array([[0.6, 0.0, -0.8]]), np.array([[-0.6, 0.0, 0.8]]))
    assert_close(behind, np.zeros((1, 3)))


# --- Gradients


def look_phong(diffuse, specular, shininess, light, eye):
    return lit_color(sg.Phong(diffuse, specular, shininess), light, eye, ambient=0.2)


def look_ggx(base, metallic, roughness, light, eye):
    return lit_color(sg.GGX(base, metallic, roughness), light, eye, ambient=0.2)


@pytest.mark.slow
def test_gradients(x64):
    """Near the highlight too, and of a smooth metal."""
    light, eye = LIGHTS[0], EYES[0]
    near = LIGHTS[0] * [-1, -1, 1] + 0.05 * EYES[1]
    metals = np.array([0.3, 1.0]), np.array([0.4, 0.2]), np.stack([light, light])
    assert_gradients(look_phong, *map(jnp.asarray, (BASE, GLOSS, 5.0, light, near)))
    look = jax.vmap(look_ggx, in_axes=(None, 0, 0, 0, 0))
    assert_gradients(look, *map(jnp.asarray, (BASE, *metals, np.stack([eye, near]))))


SIDE = np.array([1.0, 0.0, 0.0])
SINGULAR = {
    "head on": (UP, UP),
    "seen from the side": (np.array([0.6, 0.0, 0.8]), SIDE),
    "lit from the side": (SIDE, np.array([0.6, 0.0, 0.8])),
    "both": (SIDE, SIDE),
    "no half vector": (SIDE, -SIDE),
    "no half vector, from behind": (-UP, UP),
    "mirrored at right angles": (np.array([0.6, 0.0, 0.8]), np.array([0.8, 0.0, 0.6])),
    "mirrored": (np.array([0.6, 0.0, 0.8]), np.array([-0.6, 0.0, 0.8])),
    "nearly behind": (np.array([1.0, 0.0, 1e-20]), np.array([-1.0, 0.0, 1e-20])),
}


@pytest.mark.slow
def test_singular_points_have_finite_gradients():
    """For every place, smooth and rough, metal and paint, and with all kinds of exponents."""
    lights, eyes = (jnp.asarray(x, jnp.float32) for x in zip(*SINGULAR.values(), strict=True))
    base = jnp.asarray(BASE, jnp.float32)
    metallic, roughness, shininess = jnp.array([[1, 0, 1], [0, 1e-3, 1], [0.5, 1, 1000.0]])
    everywhere = lambda look, axes: jax.vmap(jax.vmap(look, axes), (*[None] * 3, 0, 0))
    ggx = everywhere(look_ggx, (None, 0, 0, None, None))
    phong = everywhere(look_phong, (None, None, 0, None, None))
    assert_finite_gradients(ggx, base, metallic, roughness, lights, eyes)
    assert_finite_gradients(phong, base, base, shininess, lights, eyes)


# --- What is refused


def test_what_is_refused():
    with pytest.raises(ValueError, match="Phong.shininess` must be positive"):
        sg.Phong(shininess=0)
    with pytest.raises(ValueError, match="GGX.roughness` must be between 0 and 1"):
        sg.GGX(roughness=np.nan)
    with pytest.raises(ValueError, match="Constant.color` must be finite"):
        sg.GGX([np.nan, 0.0, 0.0])
