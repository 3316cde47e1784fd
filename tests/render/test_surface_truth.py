"""Every shape against hard visibility (`hard_surfaces.py`): its picture and every derivative.

A gradient is that of the mean squared difference to a picture in which everything is shifted by
some pixels. Such a loss wavers as edges pass from pixel to pixel, and differences with steps of a
part of a pixel average over this. To compare slopes all the same, the loss is a mean over eight
pictures that are taken an eighth of a pixel apart, in which edges lie in all phases; and the
differences, with steps of which the smaller moves edges by a quarter to half a pixel, are
extrapolated from two steps (Richardson). Shifts were drawn such that no derivative nearly vanishes.
"""

import dataclasses
import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import hard_surfaces as hard
import quadrature as brute
import scenegraph as sg
from scenegraph.cameras import pixel_centres


SIZE, FINE = 64, 8
PHASES = np.array([(i, 5 * i % FINE) for i in range(FINE)])  # in eighths of a pixel
EYE, TARGET, UP, FOV = [2.5, -4.0, 3.2], [0.35, 0.3, -0.45], [0.3, 0.0, 1.0], 0.7
FLOOR, POWER = -1.1, 60.0
COLOR, GREY, BACKGROUND = (0.8, 0.5, 0.3), (0.6, 0.6, 0.6), (0.1, 0.2, 0.3)
LAMP = np.array([-2.6, -2.4, 3.2])
TURN = brute.quaternion([1, 1.5, 3], 1.0)
STEPS = {"lamp": 0.09, "turn": 0.02}  # other leaves: 0.024
SHIFTS = {"lamp": 0.25, "turn": 0.06}  # other leaves: 0.1


@dataclasses.dataclass
class Case:
    """A shape, its leaves, whether a turn matters, and the seed of the shifts."""

    leaves: dict
    turned: bool = True
    seed: int = 0


CASES = {
    "Sphere": Case({"center": [0.0, 0.0, 0.05], "radius": 0.65}, turned=False, seed=47),
    "Rectangle": Case({"center": [0.0, 0.1, 0.05], "size": [1.3, 0.9]}, seed=45),
    "Disk": Case({"center": [0.0, 0.1, 0.05], "radius": 0.65}),
    "Box": Case({"lower": [-0.5, -0.4, -0.3], "upper": [0.4, 0.5, 0.5]}, seed=59),
    "Cylinder": Case({"center": [0.1, 0.0, 0.05], "radius": 0.4, "height": 1.0}, seed=34),
    "Capsule": Case({"start": [-0.4, 0, -0.3], "end": [0.4, 0.1, 0.4], "radius": 0.3}, False, 37),
}


def leaves_of(case):
    """All that is differentiated, as arrays of float64."""
    turn = {"turn": TURN} if case.turned else {}
    return {k: np.asarray(v, float) for k, v in {**case.leaves, **turn, "lamp": LAMP}.items()}


def shifted(leaves, seed):
    """Every number moved by some pixels, in one sense or the other."""
    rng, moved = np.random.default_rng(seed), {}
    for name, value in sorted(leaves.items()):
        way = rng.choice([-1, 1], value.shape) * rng.uniform(0.7, 1.3, value.shape)
        moved[name] = value + SHIFTS.get(name, 0.1) * way
    return moved


# --- Pictures: eight of them, each an eighth of a pixel from the last


def split(leaves):
    """What the shape, its turn and the lamp have."""
    shape = {k: v for k, v in leaves.items() if k not in ("turn", "lamp")}
    return shape, leaves.get("turn"), leaves["lamp"]


def truth(name, leaves, floor=True, samples=hard.SAMPLES):
    shape, turn, lamp = split(leaves)
    frame = np.eye(4)
    if turn is not None:
        angle = 2 * np.arctan2(np.linalg.norm(turn[1:]), turn[0])
        frame = brute.frame(brute.turn(turn[1:], angle))
    things = [hard.Thing(getattr(hard, name)(**shape), COLOR, frame)]
    if floor:
        things.append(hard.Thing(hard.Plane([0, 0, FLOOR]), GREY))
    side = SIZE + 1  # with a pixel's room to shift
    camera = hard.Camera(EYE, TARGET, UP, wider_fov(side), FINE * side, FINE * side)
    lamp = hard.Lamp(lamp, [POWER] * 3)
    fine = hard.picture(things, camera, lamp, BACKGROUND, samples // FINE)
    cut = [fine[y : y + FINE * SIZE, x : x + FINE * SIZE] for x, y in PHASES]
    return np.stack([x.reshape(SIZE, FINE, SIZE, FINE, 3).mean((1, 3)) for x in cut])


def wider_fov(side):
    """The angle of view of more pixels of the same size."""
    return 2 * np.arctan(np.tan(FOV / 2) * side / SIZE)


def scene(name, leaves, floor=True):
    shape, turn, lamp = split(leaves)
    thing = sg.Surface(getattr(sg, name)(**shape), sg.Lambert(COLOR))
    if turn is not None:
        thing = sg.Transformed(thing, sg.Similarity(rotation=turn))
    ground = {"floor": sg.Surface(sg.Plane([0, 0, FLOOR]), sg.Lambert(GREY))} if floor else {}
    root = sg.Group(thing=thing, lamp=sg.PointLight(lamp, [POWER] * 3), **ground)
    return sg.Scene(root, background=BACKGROUND)


def ours(name, leaves, floor=True):
    camera = sg.PerspectiveCamera.look_at(EYE, TARGET, UP, FOV, SIZE, SIZE)

    def rays(phase):
        middle = (SIZE + 1) / 2 - phase / FINE
        moved = eqx.tree_at(lambda c: c.principal_point, camera, middle)
        return jax.vmap(moved.ray)(pixel_centres(SIZE, SIZE))

    all_rays = jax.vmap(rays)(jnp.asarray(PHASES))
    flat = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), all_rays)
    seen = sg.render_rays(scene(name, leaves, floor), flat)[-1]
    return seen.rgb.reshape(FINE, SIZE, SIZE, 3)


# --- Losses and slopes


@functools.partial(jax.jit, static_argnums=0)
def loss_and_slopes(name, leaves, target):
    return jax.value_and_grad(lambda x: jnp.mean((ours(name, x) - target) ** 2))(leaves)


def difference(loss, leaves, ways, step):
    """The slope of the reference's loss, from two steps."""

    def central(h):
        ends = [{k: v + s * h * ways[k] for k, v in leaves.items()} for s in (1, -1)]
        return (loss(ends[0]) - loss(ends[1])) / (2 * h)

    return (4 * central(step) - central(2 * step)) / 3


def reference_loss(name, target, samples):
    return lambda leaves: np.mean((truth(name, leaves, samples=samples) - target) ** 2)


def single(leaves):
    return jax.tree.map(lambda x: jnp.asarray(x, jnp.float32), leaves)


# --- Tests


@pytest.mark.parametrize("name", CASES)
def test_picture(name):
    """Shape, floor and shadow, to 0.002 (0.01 is asked for); 16 x 16 lines a pixel differ from
    32 x 32 by 0.0004."""
    leaves = leaves_of(CASES[name])
    drawn = jax.jit(ours, static_argnums=0)(name, single(leaves))
    assert np.sqrt(np.mean((drawn - truth(name, leaves, samples=16)) ** 2)) < 0.002


@pytest.mark.slow
@pytest.mark.parametrize("name", [*CASES, "Plane"])
def test_picture_without_floor(name):
    leaves = {"point": np.array([0.1, 0.2, 0.0]), "turn": TURN, "lamp": LAMP}
    leaves = leaves_of(CASES[name]) if name in CASES else leaves
    drawn = jax.jit(ours, static_argnums=(0, 2))(name, single(leaves), False)
    assert np.sqrt(np.mean((drawn - truth(name, leaves, False)) ** 2)) < 0.002


@pytest.mark.parametrize("name", ["Sphere", "Box"])
def test_one_derivative(name):
    """Along the way from the shifted scene, in which all leaves move; with 16 x 16 lines."""
    leaves = leaves_of(CASES[name])
    moved = shifted(leaves, CASES[name].seed)
    target, ways = truth(name, moved, samples=16), {k: v - moved[k] for k, v in leaves.items()}
    _, slopes = loss_and_slopes(name, single(leaves), target)
    slope = sum(np.sum(slopes[k] * ways[k]) for k in leaves)
    expected = difference(reference_loss(name, target, 16), leaves, ways, 0.2)
    assert abs(slope - expected) < 0.03 * abs(expected)


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_every_derivative(name):
    """By every number of centre, size, turn and lamp: within 3 %, or 1e-4 of the largest."""
    leaves = leaves_of(CASES[name])
    target = truth(name, shifted(leaves, CASES[name].seed))
    _, slopes = loss_and_slopes(name, single(leaves), target)
    loss, found, expected = reference_loss(name, target, hard.SAMPLES), {}, {}
    for leaf, value in leaves.items():
        for index in np.ndindex(value.shape):
            ways = {k: np.zeros_like(v) for k, v in leaves.items()}
            ways[leaf][index] = 1.0
            found[leaf, index] = float(slopes[leaf][index])
            expected[leaf, index] = difference(loss, leaves, ways, STEPS.get(leaf, 0.024))
    largest = max(abs(x) for x in expected.values())
    wrong = {
        key: (found[key], slope, found[key] / slope - 1)
        for key, slope in expected.items()
        if not abs(found[key] - slope) <= max(0.03 * abs(slope), 1e-4 * largest)
    }
    assert wrong == {}
