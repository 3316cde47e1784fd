"""Surfaces before, in and behind media, against brute force: thousands of points along each ray.

Cones are a thousandth of a pixel wide, so that a surface covers all of one or nothing.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import scenegraph as sg
import support.hard_surfaces as hard
import support.quadrature as brute
from scenegraph.fields import ConstantFog, GaussianBlob
from support.helpers import assert_close


WIDTH, HEIGHT, NARROW = 6, 5, 1000
EYE, TARGET, UP = [3.0, -2.0, 1.5], [0.1, 0.0, 0.1], [0.0, 0.0, 1.0]
FOCAL, NEAR, FAR, POINTS = 7.0, 0.5, 8.0, 20_000
GREY = (0.5, 0.5, 0.5)
RED, GREEN, BLUE, SAND = (0.9, 0.1, 0.05), (0.1, 0.8, 0.2), (0.1, 0.2, 0.95), (0.8, 0.7, 0.5)
BOX = ([-0.7, -0.8, -0.6], [0.6, 0.9, 0.8])
LOW_BOX = ([-0.3, -0.9, -0.9], [1.0, 0.5, 0.3])
FACING = brute.turn([3.0, 2.0, 1.0], -1.2)
JOINT = sg.Integrator(sg.Hierarchical((64, 64)), sg.Surfaces(layers=6))


def wall(distance):
    """Where a rectangle stands that is turned towards the eye, more or less."""
    ahead = np.subtract(TARGET, EYE) / np.linalg.norm(np.subtract(TARGET, EYE))
    return np.asarray(EYE) + distance * ahead


def fog(extinction, color, box):
    return sg.Volume(ConstantFog(extinction, color), sg.Box(*box)), brute.Matter(
        brute.fog(extinction), color, None, box
    )


def blob(center, radius, extinction, color):
    volume = sg.Volume(GaussianBlob(center, radius, extinction, color), None)
    return volume, brute.Matter(brute.blob(center, radius, extinction), color)


def surface(shape, opacity, color, frame=None):
    """A coloured shape in the library's words and in numpy's, with its opacity."""
    name, leaves = shape
    ours = sg.Surface(getattr(sg, name)(**leaves), color, opacity)
    if frame is not None:
        ours = sg.Transformed(ours, sg.Affine(frame[:3, :3], frame[:3, 3]))
    placed = np.eye(4) if frame is None else frame
    return ours, (hard.Thing(getattr(hard, name)(**leaves), color, placed, lit=False), opacity)


def sheet(distance, opacity, color):
    """A rectangle across the view that covers most of the picture."""
    leaves = {"center": [0.0, 0.1, 0.0], "size": [2.4, 2.0]}
    return surface(("Rectangle", leaves), opacity, color, brute.frame(FACING, wall(distance)))


def ball(opacity, color):
    return surface(("Sphere", {"center": [0.1, 0.1, 0.2], "radius": 0.4}), opacity, color)


SCENES = {  # media, surfaces
    "half a sheet before fog": [fog(1.2, SAND, BOX), sheet(2.0, 0.5, RED)],
    "half a sheet in fog": [fog(1.2, SAND, BOX), sheet(3.7, 0.5, RED)],
    "half a sheet behind fog": [fog(1.2, SAND, BOX), sheet(5.2, 0.5, RED)],
    "an opaque sheet in fog": [fog(1.2, SAND, BOX), sheet(3.7, 1.0, RED)],
    "sheets everywhere": [
        fog(1.2, SAND, BOX),
        sheet(2.0, 0.5, RED),
        sheet(3.5, 0.5, GREEN),
        sheet(4.0, 0.3, BLUE),
        sheet(5.2, 1.0, SAND),
    ],
    "half a ball in overlapping media": [
        fog(0.8, SAND, BOX),
        fog(1.5, BLUE, LOW_BOX),
        blob([0.2, 0.0, 0.1], 0.5, 2.0, GREEN),
        ball(0.5, RED),
    ],
    "an opaque ball in a blob": [blob([0.2, 0.0, 0.1], 0.5, 2.0, GREEN), ball(1.0, RED)],
}


def tree(parts, **more):
    children = {f"{chr(97 + i)}": ours for i, (ours, _) in enumerate(parts)}
    return sg.Scene(sg.Group(**children, **more), background=GREY)


def camera():
    return sg.PerspectiveCamera(
        sg.Pose.look_at(EYE, TARGET, UP), FOCAL, WIDTH, HEIGHT, near=NEAR, far=FAR
    )


def narrow_rays():
    """Through the middles of the pixels of a camera."""
    rows, columns = np.divmod(np.arange(WIDTH * HEIGHT), WIDTH)
    pixels = jnp.asarray(np.stack([columns, rows], 1) + np.float32(0.5))
    rays = jax.vmap(camera().ray)(pixels)
    thin = (rays.d_origin / NARROW, rays.d_direction / NARROW)
    return eqx.tree_at(lambda r: (r.d_origin, r.d_direction), rays, thin)


@eqx.filter_jit
def look(scene, rays):
    return sg.render_rays(scene, rays, JOINT)[-1].rgb


# --- Brute force


def march(parts, origin, direction, colors=lambda rgb: rgb):
    """Front to back along one line; layers stop what their opacity says, where they are met."""
    matters = [other for _, other in parts if isinstance(other, brute.Matter)]
    layers = [other for _, other in parts if not isinstance(other, brute.Matter)]
    step = (FAR - NEAR) / POINTS
    t = NEAR + step * (np.arange(POINTS) + 0.5)
    each = np.stack([m.absorption(origin + t[:, None] * direction, direction) for m in matters])
    total = each.sum(0)
    mixed = each.T @ np.array([colors(m.color) for m in matters])
    shine = mixed / np.maximum(total, 1e-300)[:, None]
    absorbed = np.cumsum(total) * step
    met = [(crossing(thing, origin, direction), alpha, thing.color) for thing, alpha in layers]
    met = sorted(layer for layer in met if NEAR < layer[0] < FAR)
    open_part = np.ones(POINTS)
    for at, alpha, _ in met:
        open_part = open_part * np.where(t > at, 1 - alpha, 1)
    weights = open_part * np.exp(-(absorbed - total * step)) * -np.expm1(-total * step)
    rgb, left = weights @ shine, 1.0
    for at, alpha, color in met:
        rgb = rgb + left * alpha * np.exp(-np.interp(at, t, absorbed)) * np.array(color)
        left *= 1 - alpha
    return rgb + left * np.exp(-absorbed[-1]) * np.array(GREY)


def crossing(thing, origin, direction):
    return float(thing.meet(origin[:, None], direction[:, None], 1e-9)[0])


def brute_picture(parts, colors=lambda rgb: rgb):
    pose = brute.camera_frame(EYE, TARGET, UP)
    rows, columns = np.divmod(np.arange(WIDTH * HEIGHT), WIDTH)
    x, y = (columns + 0.5 - WIDTH / 2) / FOCAL, (HEIGHT / 2 - rows - 0.5) / FOCAL
    directions = np.stack([x, y, -np.ones_like(x)], 1) @ pose[:3, :3].T
    return np.array([march(parts, pose[:3, 3], ahead, colors) for ahead in directions])


# --- Tests


@pytest.mark.slow
@pytest.mark.parametrize("name", SCENES)
def test_order(name):
    """In a scene without lights all numbers are taken as they are."""
    assert_close(look(tree(SCENES[name]), narrow_rays()), brute_picture(SCENES[name]), 0, 5e-4)


@pytest.mark.slow
def test_in_the_light():
    """Where there is a lamp, numbers are linear light, and those of media are decoded to it."""
    parts = SCENES["sheets everywhere"]
    lamp = sg.AmbientLight([0.0] * 3)

    def decode(rgb):
        x = np.asarray(rgb)
        return np.where(x <= 0.04045, x / 12.92, ((x + 0.055) / 1.055) ** 2.4)

    assert_close(look(tree(parts, lamp=lamp), narrow_rays()), brute_picture(parts, decode), 0, 5e-4)


@pytest.mark.slow
def test_by_default_both_are_seen():
    parts, rays = SCENES["half a sheet in fog"], narrow_rays()
    image = sg.render_rays(tree(parts), rays)[-1]
    assert_close(image.rgb, brute_picture(parts), 0, 5e-4)


def in_fog(extinction, distance):
    return [fog(extinction, SAND, BOX), sheet(distance, 0.7, RED)]


@pytest.mark.slow
def test_derivatives_against_brute_force():
    """By the density, and by how deep in the fog the sheet stands."""
    rays, step = narrow_rays(), 1e-2

    def total(extinction, shift):
        scene = tree(in_fog(1.2, 3.7))
        leaves = lambda s: (s.root.children["a"].field.extinction, s.root.children["b"].transform)
        moved = eqx.tree_at(lambda t: t.translation, leaves(scene)[1], wall(3.7) + shift * ahead)
        return jnp.sum(look(eqx.tree_at(leaves, scene, (extinction, moved)), rays))

    ahead = jnp.asarray(wall(1.0) - wall(0.0))
    slopes = jax.grad(total, (0, 1))(jnp.asarray(1.2), jnp.asarray(0.0))
    ends = [np.sum(brute_picture(in_fog(1.2 + s * step, 3.7))) for s in (1, -1)]
    moved = [np.sum(brute_picture(in_fog(1.2, 3.7 + s * step))) for s in (1, -1)]
    assert_close(slopes[0], (ends[0] - ends[1]) / (2 * step), 0.02)
    assert_close(slopes[1], (moved[0] - moved[1]) / (2 * step), 0.02)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["sheets everywhere", "half a ball in overlapping media"])
def test_every_leaf(name):
    """Density, places, sizes and opacities, in double precision; at full width of the pixels."""
    checks = sg.check_gradients(tree(SCENES[name]), camera(), JOINT)
    assert [c for c in checks if c.verdict not in ("right", "zero")] == []
    assert {"right"} == {c.verdict for c in checks if "extinction" in c.path or "opacity" in c.path}
