"""Materials: how they scatter, against quadrature over the sphere; and how they are sampled."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import scenegraph as sg
from scenegraph.rays import Hit
from support.helpers import assert_close, assert_finite_gradients
from support.shading import lit_color, lit_hit, UP, upper_directions


BASE = [0.7, 0.4, 0.2]
BUMPS = sg.shaders.Constant([0.6, 0.35, 0.9])
MATERIALS = {
    "lambert": sg.Lambert(BASE),
    "phong": sg.Phong(BASE, [0.2, 0.3, 0.1], 20.0),
    "phong of gloss alone": sg.Phong([0.0] * 3, [0.6] * 3, 5.0),
    "ggx": sg.GGX(BASE),
    "paint": sg.GGX(BASE, 0.0, 0.3),
    "smoothest": sg.GGX(BASE, 0.3, 0.0),
    "metal": sg.GGX(BASE, 1.0, 0.2),
    "roughest": sg.GGX(BASE, 1.0, 1.0),
    "black": sg.GGX([0.0] * 3, 0.0, 0.5),
    "principled": sg.Principled(
        BASE, 0.3, 0.4, ior=1.7, specular=0.7, specular_color=[1.0, 0.5, 2]
    ),
    "all layers": sg.Principled(
        *(BASE, 0.2, 0.5),
        clearcoat=0.8,
        clearcoat_roughness=0.3,
        sheen_color=[0.6, 0.3, 0.1],
        sheen_roughness=0.5,
    ),
    "rough glass": sg.Principled(BASE, 0.0, 0.6, transmission=0.8),
    "leaf": sg.Principled(BASE, 0.0, 0.7, transmission=0.5, thin_walled=True),
    "bumped": sg.GGX(BASE, 0.5, 0.4, normal_map=BUMPS),
}
every_material = pytest.mark.parametrize("name", MATERIALS)
# From straight above to nearly the horizon.
COSINES = [1.0, 0.7, 0.2, 0.03]


def eye_at(cosine: float) -> np.ndarray:
    across = np.sqrt(1 - cosine**2)
    return np.array([0.6 * across, 0.8 * across, cosine])


def hit_of(dtype=float) -> Hit:
    """A hit on a plane, with derivatives for normal maps."""
    d_point = np.array([[0.02, 0.005, 0.0], [-0.004, 0.03, 0.0]])
    slopes = jnp.asarray(d_point[:, :2], dtype)
    up, place = jnp.asarray(UP, dtype), jnp.zeros(3, dtype)
    return Hit(1.0, place, up, jnp.zeros(2, dtype), slopes, 1.0, d_point=jnp.asarray(d_point))


def sphere(eye: np.ndarray, alpha: float, count: int = 200) -> tuple[np.ndarray, np.ndarray]:
    """Directions all over the sphere, dense where microfacets mirror the eye, and solid angles.

    Half vectors about `UP` in polar coordinates, with `angle = alpha sinh(x)`, for the upper half;
    the lower one is a grid of angles.
    """
    last = np.arcsinh(np.pi / 2 / alpha)
    x, around = np.meshgrid((np.arange(count) + 0.5) / count, (np.arange(count) + 0.5) / count)
    x, around = last * x.ravel(), 2 * np.pi * around.ravel()
    angle, step = alpha * np.sinh(x), alpha * np.cosh(x) * last
    half = np.stack([np.sin(angle) * np.cos(around), np.sin(angle) * np.sin(around)], -1)
    half = np.concatenate([half, np.cos(angle)[:, None]], -1)
    meets = half @ eye
    lights = 2 * meets[:, None] * half - eye
    # d omega_l = 4 v.h d omega_h
    solid = 4 * meets * np.sin(angle) * step * 2 * np.pi / count**2
    upper = (lights[:, 2] > 0) & (meets > 0)
    below, solid_below = lower_grid(count // 2)
    return np.concatenate([lights[upper], below]), np.concatenate([solid[upper], solid_below])


def lower_grid(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Directions below the surface in steps of equal angles, and their solid angles."""
    angle, around = (np.arange(count) + 0.5) / count, (np.arange(2 * count) + 0.5) / (2 * count)
    angle, around = np.meshgrid(np.pi / 2 * angle, 2 * np.pi * around)
    angle, around = angle.ravel(), around.ravel()
    level = np.stack([np.cos(around), np.sin(around)], -1) * np.sin(angle)[:, None]
    solid = np.sin(angle) * (np.pi / 2) * (2 * np.pi) / (2 * count**2)
    return np.concatenate([level, -np.cos(angle)[:, None]], -1), solid


def alpha_of(material) -> float:
    rough = isinstance(material, sg.GGX | sg.Principled)
    return max(float(material.roughness) ** 2, 1e-3) if rough else 1.0


def strata(count: int = 24, choices: int = 20, seed: int = 0) -> np.ndarray:
    """Random numbers, one in each cell of a grid."""
    rng = np.random.default_rng(seed)
    cells = np.stack(np.meshgrid(*map(np.arange, (choices, count, count))), -1).reshape(-1, 3)
    return (cells + rng.uniform(size=cells.shape)) / [choices, count, count]


@eqx.filter_jit
def asked(material, hit, eye, lights):
    """Values of `scatter` and `density` for many directions of light."""
    one = lambda l: (material.scatter(hit, -eye, l), material.density(hit, -eye, l))
    return jax.vmap(one)(lights)


@eqx.filter_jit
def sampled(material, hit, eye, uniform):
    return jax.vmap(lambda u: material.sample(hit, -eye, u))(uniform)


def cast(tree, dtype=float):
    """The same tree with floats of a type."""
    return jax.tree.map(lambda x: x.astype(dtype) if eqx.is_inexact_array(x) else x, tree)


@every_material
@pytest.mark.parametrize("cosine", COSINES)
def test_samples_are_those_of_the_density(x64, name, cosine):
    """Their mean weight is the integral of `scatter`, their density what `density` says."""
    material, eye = cast(MATERIALS[name]), eye_at(cosine)
    lights, solid = sphere(eye, alpha_of(material))
    scatter, density = asked(material, hit_of(), jnp.asarray(eye), jnp.asarray(lights))
    sample = sampled(material, hit_of(), jnp.asarray(eye), jnp.asarray(strata()))
    assert np.all(np.isfinite(sample.weight)) and np.all(np.asarray(sample.weight) >= 0)
    assert_close(np.linalg.norm(sample.direction, axis=-1), np.ones(len(strata())), 1e-9)
    assert not np.any(sample.is_specular)

    integral = solid @ np.asarray(scatter)
    mean = np.mean(sample.weight, axis=0)
    noise = np.std(sample.weight, axis=0) / np.sqrt(len(strata()))
    assert np.all(np.abs(mean - integral) < 4 * noise + 0.01 * integral)
    assert np.all(integral <= 1)

    # Directions that cannot be answered for, such as those below the horizon, have weight zero.
    lost = np.mean(np.asarray(sample.density) == 0)
    assert_close(solid @ np.asarray(density), np.asarray(1 - lost), 0.01)
    assert np.all((np.asarray(density) > 0) | np.all(np.asarray(scatter) == 0, axis=-1))
    _, of_sample = asked(material, hit_of(), jnp.asarray(eye), sample.direction)
    kept = np.asarray(sample.density) > 0
    assert_close(of_sample[kept], sample.density[kept], 1e-9)


@every_material
def test_directions_fill_the_sphere_as_the_density_says(x64, name):
    """Shares of samples in octants and bands, which a wrong frame or angle would change."""
    material, eye = cast(MATERIALS[name]), eye_at(0.7)
    lights, solid = sphere(eye, alpha_of(material))
    _, density = asked(material, hit_of(), jnp.asarray(eye), jnp.asarray(lights))
    sample = sampled(material, hit_of(), jnp.asarray(eye), jnp.asarray(strata()))
    directions = np.asarray(sample.direction)[np.asarray(sample.density) > 0]
    mirrored = eye * [-1, -1, 1]
    regions = [
        lambda l: l[:, 0] > 0.3,
        lambda l: l[:, 1] > 0,
        lambda l: l[:, 2] > 0.6,
        lambda l: l @ mirrored > np.cos(alpha_of(material)),
        lambda l: np.cross(l, mirrored)[:, 2] > 0,
    ]
    for region in regions:
        share = np.sum(region(directions)) / len(strata())
        expected = np.sum((solid * np.asarray(density))[region(lights)])
        assert abs(share - expected) < 0.02


@every_material
def test_light_and_eye_may_change_places(name):
    """All but bumps, which a light that sets behind the surface leaves, and rough glass."""
    if name in ("bumped", "rough glass", "leaf"):
        return
    material, hit = MATERIALS[name], hit_of(np.float32)
    lights, eyes = (jnp.asarray(upper_directions(60, i), jnp.float32) for i in (1, 2))
    one = jax.jit(jax.vmap(lambda e, l: material.scatter(hit, -e, l)))
    assert_close(one(eyes, lights) / lights[:, 2:], one(lights, eyes) / eyes[:, 2:], 1e-4)


@every_material
def test_a_lamp_is_scattered(name):
    """The colour under one lamp is `scatter` times its irradiance, on both sides."""
    material = MATERIALS[name]
    if name == "bumped":
        material = sg.GGX(BASE, 0.5, 0.4, normal_map=sg.shaders.Constant([0.5, 0.5, 1.0]))
    below = 0 if name in ("rough glass", "leaf") else 5
    lights = np.concatenate([upper_directions(35 - below, 1), -upper_directions(below, 3)])
    lights, eyes = (jnp.asarray(x, jnp.float32) for x in (lights, upper_directions(35, 2)))
    lit = jax.jit(jax.vmap(lambda e, l: lit_color(material, l, e)))
    one = jax.jit(jax.vmap(lambda e, l: material.scatter(lit_hit(), -e, l)))
    assert_close(one(eyes, lights), lit(eyes, lights), 2e-6)


def test_kinds_of_scattering():
    """Of paint, the even part is the rest of what is mirrored; of metal, there is none."""
    down = jnp.asarray(strata(10, 10), jnp.float32)
    kinds = lambda m: sampled(m, hit_of(np.float32), jnp.asarray(UP, jnp.float32), down).is_diffuse
    assert np.all(kinds(sg.Lambert(BASE)))
    assert not np.any(kinds(sg.GGX(BASE, 1.0, 0.3)))
    assert not np.any(kinds(sg.GGX([0.0] * 3, 0.0, 0.3)))
    # Green as bright as blue and red are not: 0.5 * 0.92 beside 0.04.
    assert abs(np.mean(kinds(sg.GGX([0.5] * 3, 0.0, 0.1))) - 0.48 / (0.48 + 0.04)) < 0.03
    assert abs(np.mean(kinds(sg.Phong([0.3] * 3, [0.1] * 3))) - 0.75) < 0.01


SIDE = np.array([1.0, 0.0, 0.0])
SINGULAR = [
    (UP, UP),
    (np.array([0.6, 0.0, 0.8]), SIDE),
    (SIDE, np.array([0.6, 0.0, 0.8])),
    (SIDE, SIDE),
    (SIDE, -SIDE),
    (-UP, UP),
    (np.array([0.6, 0.0, 0.8]), np.array([-0.6, 0.0, 0.8])),
]


@pytest.mark.parametrize("roughness", [0.0, 0.5, 1.0])
def test_finite_derivatives(roughness):
    """Of what is scattered, at singular directions; and of samples at all ends of chance."""
    lights, eyes = (jnp.asarray(x, jnp.float32) for x in zip(*SINGULAR, strict=True))
    hit = hit_of(np.float32)

    def scatter(base, metallic, roughness, shininess, eyes, lights):
        def one(eye, light):
            ggx, phong = sg.GGX(base, metallic, roughness), sg.Phong(base, base, shininess)
            every = ggx, phong, sg.Lambert(base)
            return [(x.scatter(hit, -eye, light), x.density(hit, -eye, light)) for x in every]

        return jax.vmap(one)(eyes, lights)

    base = jnp.asarray(BASE, jnp.float32)
    numbers = (jnp.float32(x) for x in (0.5, roughness, 1.0 + 100 * roughness))
    assert_finite_gradients(scatter, base, *numbers, eyes, lights)

    ends = np.array([0.0, 0.5, 1 - 2**-24], np.float32)
    uniform = jnp.asarray(np.stack(np.meshgrid(ends, ends, ends), -1).reshape(-1, 3))

    def weights(base, roughness, eye):
        every = sg.GGX(base, 0.5, roughness), sg.Phong(base, base), sg.Lambert(base)
        return [jax.vmap(x.sample, (None, None, 0))(hit, -eye, uniform).weight for x in every]

    for eye in (UP, SIDE):
        eye = jnp.asarray(eye, jnp.float32)
        assert_finite_gradients(weights, base, jnp.float32(roughness), eye)
