"""The material of glTF 2.0: energy, secondary rays, lamps and inputs."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import scenegraph as sg
from scenegraph.rays import Hit, Irradiance, LampPolygons, no_light
from support.helpers import assert_close, assert_finite_gradients, assert_gradients
from support.shading import UP


WHITE = [1.0, 1.0, 1.0]
COSINES = [1.0, 0.7, 0.3, 0.15]


def eye_at(cosine):
    across = np.sqrt(1 - np.float64(cosine) ** 2)
    return jnp.asarray([0.6 * across, 0.8 * across, cosine], jnp.float32)


def hit_of(side=1.0, t=1.0, normal=UP):
    place = jnp.zeros(3)
    return Hit(t, place, jnp.asarray(normal, float), place[:2], jnp.zeros((2, 2)), 1.0, side=side)


def numbers(count=24, choices=24):
    """Random numbers, one in each cell of a grid."""
    cells = np.stack(np.meshgrid(*map(np.arange, (choices, count, count))), -1).reshape(-1, 3)
    spread = np.random.default_rng(0).uniform(size=cells.shape)
    return jnp.asarray((cells + spread) / [choices, count, count], jnp.float32)


@eqx.filter_jit
def sampled(material, eyes, side):
    ask = lambda eye, u: material.sample(hit_of(side), -eye, u)
    return jax.vmap(jax.vmap(ask, (None, 0)), (0, None))(eyes, numbers())


@eqx.filter_jit
def evenly_lit(material, eyes, side):
    """The colour in ambient light, and the weights of secondary rays."""
    none = jnp.zeros((0, 3), eyes.dtype)
    lights = Irradiance(none, none, jnp.ones(3, eyes.dtype))
    look = lambda eye: material(hit_of(side), -eye, lights)
    return jax.vmap(look)(eyes), jax.vmap(lambda e: material.secondary(hit_of(side), -e))(eyes)


EYES = jnp.stack([eye_at(x) for x in COSINES])
ROUGH = [0.0, 0.1, 0.3, 0.6, 1.0]


# --- Energy


@pytest.mark.parametrize("metallic", [0.0, 0.5, 1.0])
def test_white_furnace(metallic):
    """A white surface of any roughness sends back all light, by chance and in closed form."""
    for roughness in ROUGH:
        material = sg.Principled(WHITE, metallic, roughness)
        parts = np.mean(sampled(material, EYES, 1.0).weight, axis=1)
        assert_close(parts, np.ones((len(COSINES), 3)), 0.01)
        assert_close(evenly_lit(material, EYES, 1.0)[0], np.ones((len(COSINES), 3)), 1e-3)


@pytest.mark.parametrize("options", [{}, {"thin_walled": True}, {"transmission": 0.5}])
def test_glass_loses_no_light(options):
    for roughness in ROUGH:
        material = sg.Principled(WHITE, 0.0, roughness, **{"transmission": 1.0, **options})
        for side in (1.0, -1.0):
            parts = np.mean(sampled(material, EYES, side).weight, axis=1)
            assert_close(parts, np.ones((len(COSINES), 3)), 0.02)
            total = evenly_lit(material, EYES, side)[1].weight.sum(axis=1)
            if "transmission" not in options:
                assert_close(total, np.ones((len(COSINES), 3)), 1e-5)


def test_layers_send_out_no_more_than_arrives():
    coats = {"clearcoat": 1.0, "clearcoat_roughness": 0.2}
    cloth = {"sheen_color": WHITE, "sheen_roughness": 0.4}
    for options in (coats, cloth, {**coats, **cloth}):
        parts = np.mean(
            sampled(sg.Principled(WHITE, 0.0, 0.5, **options), EYES, 1.0).weight, axis=1
        )
        assert np.all(parts < 1.01) and np.all(parts > 0.85)
        assert np.all(evenly_lit(sg.Principled(WHITE, **options), EYES, 1.0)[0] < 1.001)


def test_metal_and_paint_have_their_colours():
    """Head on: F = base and 0.04, and paint lets the rest pass twice."""
    base = jnp.array([0.9, 0.6, 0.2])
    smooth = evenly_lit(sg.Principled(base, 1.0, 0.0), EYES[:1], 1.0)[1]
    assert_close(smooth.weight[0, 0], base, 2e-3)
    black = evenly_lit(sg.Principled([0.0] * 3, 0.0, 0.0), EYES[:1], 1.0)
    assert_close(black[0][0], np.full(3, 0.04), 0.01)
    # KHR_materials_ior and KHR_materials_specular: ((n - 1) / (n + 1))^2 color specular
    given = {"ior": 2.0, "specular": 0.5, "specular_color": [1.0, 0.5, 0.0]}
    weight = evenly_lit(sg.Principled([0.0] * 3, 0.0, 0.0, **given), EYES[:1], 1.0)[1].weight
    assert_close(weight[0, 0], np.array([1.0, 0.5, 0.0]) / 18, 0.01)


# --- Secondary rays


def fresnel(cosine, ratio):
    """In terms of angles."""
    before = np.arccos(cosine)
    sine = np.sin(before) / ratio
    if sine >= 1:
        return 1.0
    behind = np.arcsin(sine)
    if before == 0:
        return ((ratio - 1) / (ratio + 1)) ** 2
    across = np.sin(before - behind) / np.sin(before + behind)
    along = np.tan(before - behind) / np.tan(before + behind)
    return (across**2 + along**2) / 2


@pytest.mark.parametrize("side", [1.0, -1.0])
def test_smooth_glass(side):
    """Fresnel and Snell, and total reflection inside."""
    glass = sg.Principled(WHITE, 0.0, 0.0, transmission=1.0, ior=1.5)
    _, cones = evenly_lit(glass, EYES, side)
    ratio = 1.5**side
    for i, cosine in enumerate(COSINES):
        expected = fresnel(cosine, ratio)
        assert_close(cones.weight[i, :, 0], np.array([expected, 1 - expected]), 1e-4, 1e-5)
        assert_close(cones.direction[i, 0], EYES[i] * jnp.array([-1, -1, 1]), 1e-5)
        if expected < 1:
            sine = np.linalg.norm(cones.direction[i, 1, :2])
            assert_close(sine, np.sqrt(1 - cosine**2) / ratio, 1e-4, 1e-6)
            assert cones.direction[i, 1, 2] < 0
    # Paths choose the same two directions, as often.
    sample = sampled(glass, EYES, side)
    assert np.all(sample.is_specular) and np.all(sample.density == 0)
    up = np.mean(np.asarray(sample.direction[..., 2]) > 0, axis=1)
    assert_close(up, cones.weight[:, 0, 0], 0.0, 0.04)
    assert_close(sample.weight, np.ones(sample.weight.shape), 1e-4)


def test_a_leaf_lets_light_pass_straight_on():
    leaf = sg.Principled([0.2, 0.8, 0.3], 0.0, 0.0, transmission=1.0, thin_walled=True)
    for side in (1.0, -1.0):
        _, cones = evenly_lit(leaf, EYES, side)
        assert_close(cones.direction[:, 1], -EYES, 1e-6)
        assert_close(cones.weight[0, 1], 0.96 * np.array([0.2, 0.8, 0.3]), 1e-3)


def test_rough_reflections_lean_to_the_normal():
    """And show less of lamps, the rest of which the colour has."""
    ask = lambda r: evenly_lit(sg.Principled(WHITE, 1.0, r), EYES[1:2], 1.0)[1]
    leans = [float(ask(r).direction[0, 0, 2]) for r in (0.0, 0.3, 0.6, 1.0)]
    assert_close(leans[0], 0.7, 1e-5)
    assert np.all(np.diff(leans) > 0) and abs(leans[-1] - 1) < 1e-5
    shown = [float(ask(r).lamps[0, 0]) for r in (0.0, 0.1, 0.175, 0.25, 1.0)]
    assert_close(np.array(shown), np.array([1, 1, 0.5, 0, 0]), 1e-4, 1e-4)
    spread = [float(ask(r).spread[0, 0]) for r in (0.2, 0.4)]
    assert_close(spread[1] / spread[0], 4.0, 1e-4)


def test_cones_are_those_of_what_is_given():
    count = lambda **options: evenly_lit(sg.Principled(**options), EYES[:1], 1.0)[1].weight.shape[1]
    assert count() == 1 and count(transmission=0.5) == 2 and count(clearcoat=1.0) == 2
    assert count(transmission=0.5, clearcoat=1.0) == 3


def test_light_fades_inside():
    """By Beer's law, over the length of a ray that comes from inside."""
    options = {"attenuation_color": [0.5, 0.25, 0.0], "attenuation_distance": 2.0}
    glass = sg.Principled(WHITE, 0.0, 0.0, transmission=1.0, **options)
    left = glass.attenuation(hit_of(), -EYES[0], jnp.asarray(4.0))
    assert_close(left, np.array([0.25, 0.0625, 0.0]), 1e-6)
    ask = lambda side: glass.secondary(hit_of(side, t=4.0), -EYES[0]).weight
    assert_close(ask(-1.0)[1], 0.96 * left, 1e-4)
    assert_close(ask(1.0)[1], np.full(3, 0.96), 1e-4)
    assert_close(glass.attenuation(hit_of(), -EYES[0], jnp.asarray(0.0)), np.ones(3))
    sample = glass.sample(hit_of(-1.0, t=4.0), -EYES[0], jnp.array([0.9, 0.5, 0.5]))
    assert_close(sample.weight, left, 1e-4)


# --- Lamps


def test_highlights_of_lamps_are_those_of_ggx():
    """Where no cone shows them; a mirror has none of its own."""
    corners = jnp.array([[[0.2, 0.1, 1.0], [0.2, -0.5, 1.2], [-0.6, -0.5, 1.1], [-0.6, 0.1, 0.9]]])
    none = jnp.zeros((1, 3))
    up = jnp.asarray(UP, none.dtype)[None]
    lights = Irradiance(up, none, none[0], lamps=LampPolygons(corners, jnp.ones((1, 3))))
    look = jax.jit(lambda shader: jax.vmap(lambda e: shader(hit_of(), -e, lights))(EYES))
    for roughness in (0.3, 0.8):
        base = [0.9, 0.6, 0.2]
        ours, theirs = sg.Principled(base, 1.0, roughness), sg.GGX(base, 1.0, roughness)
        assert_close(look(ours), look(theirs), 1e-4)
    assert_close(look(sg.Principled(WHITE, 1.0, 0.05)), np.zeros((4, 3)), absolute=1e-6)
    # A coat has a highlight of its own.
    coated = sg.Principled([0.0] * 3, specular=0.0, clearcoat=1.0, clearcoat_roughness=0.5)
    assert_close(look(coated), look(sg.GGX([0.0] * 3, 0.0, 0.5)), 1e-4)


def test_emission_and_occlusion():
    glow = sg.Principled(emission=[1.0, 2.0, 3.0], emission_strength=5.0)
    color = glow(hit_of(), -EYES[0], no_light())
    assert_close(color, np.array([5.0, 10.0, 15.0]), 1e-6)
    none = jnp.zeros((0, 3))
    ambient = Irradiance(none, none, jnp.ones(3))
    half = sg.Principled(occlusion=0.5)(hit_of(), -EYES[0], ambient)
    assert_close(half, 0.5 * sg.Principled()(hit_of(), -EYES[0], ambient), 1e-6)


# --- Inputs


def leaves(material):
    scene = sg.Scene(sg.Surface(sg.Sphere(), material))
    return sorted(x for x, _, _ in sg.scene.named_leaves(scene) if x.startswith("shader."))


def test_what_is_not_given_is_no_leaf():
    ours = ["shader.base_color.color", "shader.metallic", "shader.roughness"]
    assert leaves(sg.Principled()) == ours
    assert leaves(sg.Principled("gold", transmission=1, ior=1.5)) == sorted(
        [*ours, "shader.ior", "shader.transmission"]
    )


def test_a_pattern_is_an_input():
    gray = lambda x: sg.shaders.Constant([x] * 3)
    values = {"specular": 0.4, "transmission": 0.3, "clearcoat": 0.5, "clearcoat_roughness": 0.2}
    plain = sg.Principled(WHITE, 0.2, 0.3, sheen_color=WHITE, sheen_roughness=0.6, **values)
    shaded = {name: gray(x) for name, x in values.items()}
    other = sg.Principled(
        *(WHITE, gray(0.2), gray(0.3)), sheen_color=WHITE, sheen_roughness=gray(0.6), **shaded
    )
    light = jnp.array([0.6, 0.0, 0.8])
    ask = lambda material: material.scatter(hit_of(), -EYES[1], light)
    assert_close(ask(plain), ask(other), 1e-6)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"roughness": 1.5}, "`Principled.roughness` must be between 0 and 1; got 1.5"),
        ({"ior": 0.5}, "`Principled.ior` must be finite and at least 1; got 0.5"),
        ({"transmission": -0.1}, "`Principled.transmission` must be between 0 and 1"),
        ({"base_color": [1.2, 0, 0]}, "`Principled.base_color` must be between 0 and 1"),
        ({"clearcoat_roughness": 0.1}, "`Principled.clearcoat_roughness` needs `clearcoat`"),
        ({"attenuation_distance": 1.0}, "`Principled.attenuation_distance` needs `attenuation_c"),
        (
            {"attenuation_distance": 0.0, "attenuation_color": [0.5] * 3},
            "`Principled.attenuation_distance` must be positive and finite",
        ),
        ({"specular_color": [-1.0, 0, 0]}, "must be finite and not negative"),
        ({"emission_strength": -1.0}, "`Principled.emission_strength` must be finite and not neg"),
    ],
)
def test_what_is_refused(options, words):
    with pytest.raises(ValueError) as caught:
        sg.Principled(**options)
    assert words in str(caught.value)


# --- Derivatives


def look(values, eye, light):
    """Everything that a material answers."""
    base, metallic, roughness, ior, rest = values
    given = {name: rest for name in ("transmission", "clearcoat", "specular")}
    cloth = {"sheen_color": base, "sheen_roughness": rest, "clearcoat_roughness": roughness}
    inside = {"attenuation_color": base, "attenuation_distance": ior}
    material = sg.Principled(base, metallic, roughness, ior=ior, **given, **cloth, **inside)
    hit, view = hit_of(jnp.ones_like(ior)), -eye
    none = jnp.ones((1, 3), eye.dtype)
    square = jnp.array([[0.1, 0.1, 1.0], [0.1, -0.1, 1.0], [-0.1, -0.1, 1.0], [-0.1, 0.1, 1.0]])
    lamps = LampPolygons(square[None].astype(eye.dtype), none)
    lights = Irradiance(
        jnp.stack([light, light]), jnp.concatenate([none, none]), none[0], lamps=lamps
    )
    cones = material.secondary(hit, view)
    colors = material(hit, view, lights), material.scatter(hit, view, light)
    return colors, cones.direction, cones.weight, cones.spread, cones.roughness


SIDE = np.array([1.0, 0.0, 0.0])
SLANT = np.array([0.6, 0.0, 0.8])
PLACES = [(UP, UP), (SLANT, SIDE), (SIDE, SLANT), (SIDE, -SIDE), (-UP, UP), (SLANT, SLANT)]
PLACES += [(-SLANT, SLANT), (SLANT * [-1, 1, 1], SLANT)]


@pytest.mark.slow
def test_finite_derivatives():
    """At the ends of all inputs, for light and eye at the normal, in the surface, and opposite."""
    lights, eyes = (jnp.asarray(x, jnp.float32) for x in zip(*PLACES, strict=True))
    base = jnp.asarray([[0.0] * 3, [0.5, 0.3, 0.2], [1.0] * 3, [0.5, 0.0, 1.0]], jnp.float32)
    ends = jnp.asarray([0.0, 0.5, 1.0, 0.02], jnp.float32)
    values = base, ends, ends, jnp.asarray([1.0, 1.5, 2.5, 1.0], jnp.float32), ends
    everywhere = jax.vmap(jax.vmap(look, (None, 0, 0)), (0, None, None))
    assert_finite_gradients(everywhere, values, eyes, lights)


@pytest.mark.slow
def test_gradients(x64):
    light = jnp.asarray([-0.5, 0.1, 0.7]) / np.sqrt(0.75)
    values = jnp.array([0.9, 0.5, 0.2]), 0.3, 0.37, 1.4, 0.63
    eye = jnp.asarray([0.6, 0.0, 0.8], float)

    def asked(values, lean):
        toward = eye + lean * jnp.asarray([0.1, 0.3, 0.2])
        return look(values, toward / jnp.linalg.norm(toward), light)

    assert_gradients(asked, jax.tree.map(lambda x: jnp.asarray(x, float), values), jnp.asarray(0.1))


def test_it_is_seen_without_lights(recwarn):
    """In a white surrounding, glass and metal are white, and no warning says they are black."""
    camera = sg.PerspectiveCamera.look_at([0.0, -3, 0], [0.0, 0, 0], [0.0, 0, 1], 0.2, 4, 4)
    for material in (sg.Principled(WHITE, 1.0, 0.3), sg.Principled(WHITE, transmission=1.0)):
        scene = sg.Scene(sg.Surface(sg.Sphere(), material), background=WHITE)
        # What several facets reflect is scattered evenly, and sees no background.
        assert_close(sg.render(scene, camera).rgb, np.ones((4, 4, 3)), 0.015)
    assert not [x for x in recwarn if "black without" in str(x.message)]
