"""Rays at which some formula divides by zero or takes a root of it: all derivatives are finite."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import scenegraph as sg
from scenegraph.rays import Ray


SHAPES = {
    "sphere": sg.Sphere([0.0, 0.0, 0.0], 1.0),
    "ellipsoid": sg.Ellipsoid([0.0, 0.0, 0.0], [1.0, 0.7, 1.0]),
    "plane": sg.Plane([0.0, 0.0, 0.0], [0.0, 0.0, 1.0]),
    "rectangle": sg.Rectangle([0.0, 0.0, 0.0], [2.0, 2.0]),
    "disk": sg.Disk([0.0, 0.0, 0.0], 1.0),
    "box": sg.Box([-1.0, -1.0, -1.0], [1.0, 1.0, 1.0]),
    "cylinder": sg.Cylinder([0.0, 0.0, 0.0], 1.0, 2.0),
    "capsule": sg.Capsule([0.0, 0.0, -0.5], [0.0, 0.0, 0.5], 1.0),
    "capsule of one point": sg.Capsule([0.0, 0.0, 0.0], [0.0, 0.0, 0.0], 1.0),
}
LONG = [
    "sphere",
    "ellipsoid",
    "disk",
    "box",
    "cylinder",
    "capsule",
    "capsule of one point",
]  # to compile
QUICK = [name for name in SHAPES if name not in LONG]
NEAR, FAR = 0.01, 100.0
LINES = {  # origin, direction
    "through the centre": ([-4, 0, 0], [1, 0, 0]),
    "through the centre, from above": ([0, 0, 4], [0, 0, -1]),
    "from the centre": ([0, 0, 0], [1, 0, 0]),
    "from the centre, upwards": ([0, 0, 0], [0, 0, 1]),
    "grazing the side": ([-4, 1, 0], [1, 0, 0]),
    "grazing the top": ([-4, 0, 1], [1, 0, 0]),
    "grazing the top of a capsule": ([-4, 0, 1.5], [1, 0, 0]),
    "along the side": ([1, 0, 4], [0, 0, -1]),
    "along an edge": ([-4, 1, 1], [1, 0, 0]),
    "through a corner": ([3, 3, 3], [-1, -1, -1]),
    "in the plane": ([-4, 0.5, 0], [1, 0, 0]),
    "nearly in the plane": ([-4, 0.5, 0], [1, 0, 1e-20]),
    "parallel to the plane": ([-4, 0.5, 0.3], [1, 0.2, 0]),
    "wide miss": ([-4, 50, 0.2], [1, 0.1, 0.3]),
    "inside": ([0.3, 0.2, 0.1], [0.4, -0.5, 0.6]),
    "behind": ([-4, 0.1, 0.2], [-1, 0, 0.1]),
    "on the surface, outwards": ([1, 0, 0], [1, 0, 0]),
    "on the surface, inwards": ([1, 0, 0], [-1, 0, 0]),
    "on the surface, along it": ([1, 0, 0], [0, 1, 0]),
    "on the top, along it": ([0, 0, 1], [0, 1, 0]),
    "no direction": ([-4, 0, 0], [0, 0, 0]),
    "nowhere": ([0, 0, 0], [0, 0, 0]),
    "from very far": ([-1e4, 0.1, 0.2], [1, 0, 0]),
    "long": ([-4, 0.1, 0.2], [1e4, 0, 0]),
    "short": ([-4, 0.1, 0.2], [1e-4, 0, 0]),
}
EYE3 = np.eye(2, 3, 1)  # a pixel's x moves a ray along y, and its y along z
FOOTPRINTS = {  # d_origin, d_direction
    "zero": (0 * EYE3, 0 * EYE3),
    "usual": (0 * EYE3, 0.01 * EYE3),
    "turned": (0 * EYE3, [[0.01, 0.02, 0.0], [0.0, 0.01, -0.02]]),
    "parallel rays": (0.1 * EYE3, 0 * EYE3),
    "a line": (0 * EYE3, [[0.0, 0.01, 0.0], [0.0, 0.01, 0.0]]),
    "tiny": (0 * EYE3, 1e-12 * EYE3),
    "huge": (10.0 * EYE3, 10.0 * EYE3),
}
CUTS = {"open": (NEAR, FAR), "away": (50.0, 60.0), "at the surface": (3.0, 5.0), "no": (0.0, 0.0)}


def rays():
    """Every line with every footprint, and with every cut; and what they are called."""
    cases = [(line, footprint, "open") for line in LINES for footprint in FOOTPRINTS]
    cases += [(line, "usual", cut) for line in LINES for cut in CUTS]
    parts = [(*LINES[a], LINES[a][1], *FOOTPRINTS[b], *CUTS[c]) for a, b, c in cases]
    columns = [np.array(column, np.float32) for column in zip(*parts, strict=True)]
    return cases, Ray(*map(jnp.asarray, columns))


@jax.jit
@functools.partial(jax.vmap, in_axes=(None, 0))
@functools.partial(jax.value_and_grad, argnums=(0, 1), has_aux=True)
def ask(shape, ray):
    """All numbers that a shape answers with, added with weights; and they themselves."""
    hits, covered = shape.parts(ray), shape.coverage(ray)
    numbers = jnp.concatenate([x.ravel() for x in [*jax.tree.leaves(hits), covered]])
    return jnp.sum(numbers * jnp.linspace(0.5, 1.5, numbers.size)), (hits, covered)


@pytest.mark.parametrize("name", [*QUICK, *(pytest.param(x, marks=pytest.mark.slow) for x in LONG)])
def test_everything_is_finite(name):
    """Answers, and their derivatives by every leaf of the shape and of the ray."""
    cases, lines = rays()
    answers = (_, (hits, covered)), _ = ask(SHAPES[name], lines)
    for leaf in jax.tree.leaves(answers):
        finite = np.isfinite(leaf).reshape(len(cases), -1).all(axis=1)
        assert [case for case, good in zip(cases, finite, strict=True) if not good] == []
    assert np.all((covered >= 0) & (covered <= 1))
    assert np.all(hits.coverage >= 0)
    assert np.all(np.sum(hits.coverage, axis=1) <= 1 + 1e-5)


EYE, SEEN = np.array([0.0, -3.0, 3.0]), np.zeros(3)
LAMPS = {
    "on the surface": SEEN,
    "in the plane": [3, 0, 0],
    "far away": [0, 0, 1e4],
    "at the eye": EYE,
}


@jax.jit
@jax.value_and_grad
def color(scene):
    """Of one pixel."""
    camera = sg.PerspectiveCamera.look_at(EYE, SEEN, [0, 0, 1], 0.5, 1, 1)
    ray = camera.ray(jnp.array([0.5, 0.5]))
    rays = jax.tree.map(lambda x: x[None], ray)
    return jnp.sum(sg.render_rays(scene, rays)[-1].rgb)


LONG_LAMPS = [pytest.param(place, marks=pytest.mark.slow) for place in list(LAMPS)[:3]]


@pytest.mark.parametrize("place", [*LONG_LAMPS, "at the eye"])
def test_a_lamp_anywhere(place):
    """Exactly at what a pixel sees, or such that its light only grazes it."""
    things = {
        "floor": sg.Surface(sg.Plane(), sg.Lambert([0.5] * 3)),
        "ball": sg.Surface(sg.Sphere([0.0, 0.0, 1.0], 0.2), sg.Lambert([0.5] * 3)),
        "lamp": sg.PointLight(np.asarray(LAMPS[place], np.float32), [1.0] * 3),
    }
    for leaf in jax.tree.leaves(color(sg.Scene(sg.Group(**things)))):
        assert np.all(np.isfinite(leaf))
