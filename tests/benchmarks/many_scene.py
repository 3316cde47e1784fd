"""The scenes of the benchmark of many things: a checkered floor, things at random, lamps."""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import scenegraph as sg


SIZE = 256
LAMP, POWER = (2.0, -2.0, 6.0), 60.0
EYE, TARGET, FOV = (0.0, -8.0, 5.0), (0.0, 0.0, 0.5), 0.8


def places(count: int) -> tuple[np.ndarray, float, np.ndarray]:
    """Centres, the radius of all, and colours."""
    draw = np.random.default_rng(0)
    centers = draw.uniform([-3, -3, 0.2], [3, 3, 1.5], (count, 3))
    return centers, 1.2 / math.sqrt(count) + 0.02, draw.uniform(0.2, 0.9, (count, 3))


def camera(size: int) -> sg.PerspectiveCamera:
    """From above and before."""
    return sg.PerspectiveCamera.look_at(EYE, TARGET, [0, 0, 1], FOV, size, size)


def ours(kind: str, count: int) -> sg.Scene:
    """Things of one kind, or of six kinds with five shaders; or a hundred spheres and 16 lamps."""
    lamps = 16 if kind == "lamps" else 1
    centers, radius, colors = places(count)
    things: dict[str, Any] = {}
    if kind != "copies":
        for i, (center, color) in enumerate(zip(centers, colors, strict=True)):
            things[f"thing{i}"] = _thing(kind, i, center, radius, color)
    else:
        things["things"] = _copies(centers, radius, colors)
    lights = {
        f"lamp{i}": sg.PointLight(np.array(LAMP) + [-0.3 * i, 0.3 * i, 0], [POWER / lamps] * 3)
        for i in range(lamps)
    }
    floor = sg.Surface(sg.Plane(), sg.Lambert(sg.Checker(1.0, [0.8] * 3, [0.2] * 3)))
    return sg.Scene(sg.Group(floor=floor, **things, **lights))


def _copies(centers: np.ndarray, radius: float, colors: np.ndarray) -> sg.Instances:
    """The spheres as one node."""
    ball = sg.Surface(sg.Sphere(), sg.Lambert([0.5] * 3))
    places = jax.vmap(lambda at: sg.Similarity(at, scale=radius))(jnp.asarray(centers))
    return sg.Instances(ball, places, {"shader.albedo.color": colors})


def _thing(kind: str, number: int, at: np.ndarray, r: float, color: np.ndarray) -> sg.Surface:
    up = np.array([0.0, 0.0, 0.6 * r])
    shapes = {
        "spheres": lambda: sg.Sphere(at, r),
        "boxes": lambda: sg.Box(at - 0.6 * r, at + 0.6 * r),
        "capsules": lambda: sg.Capsule(at - up, at + up, 0.4 * r),
        "cylinders": lambda: sg.Cylinder(at, 0.5 * r, 1.2 * r),
        "disks": lambda: sg.Disk(at, r),
        "rectangles": lambda: sg.Rectangle(at, [r, r]),
    }
    if kind != "mixture":
        return sg.Surface(shapes.get(kind, shapes["spheres"])(), sg.Lambert(color))
    shaders = [
        lambda: sg.Lambert(color),
        lambda: color,
        lambda: sg.Lambert(sg.Checker(0.2, color, [0.5] * 3)),
        lambda: sg.Phong(color),
        lambda: sg.GGX(color),
    ]
    return sg.Surface(list(shapes.values())[number % 6](), shaders[number % 5]())


def media(kind: str, count: int) -> sg.Scene:
    """Blobs in boxes that rarely overlap, or copies of one field of many numbers; no surfaces."""
    centers, _, colors = places(count)
    radius = 1.2 / math.sqrt(count) + 0.05
    if kind == "fields":
        grid = sg.encodings.Grid((8, 16, 32, 64), 2, 2**14, key=jax.random.key(0))
        field = sg.fields.GridField(grid, 32, 15, density_bias=0.3, key=jax.random.key(1))
        volume = sg.Volume(field, sg.Box([-1.0] * 3, [1.0] * 3))
        frames = jax.vmap(lambda at: sg.Similarity(at, scale=radius))(jnp.asarray(centers))
        return sg.Scene(sg.Instances(volume, frames))
    blobs = {
        f"blob{i}": sg.Volume(
            sg.fields.GaussianBlob(at, radius / 2.5, 20.0, color), sg.Box(at - radius, at + radius)
        )
        for i, (at, color) in enumerate(zip(centers, colors, strict=True))
    }
    return sg.Scene(sg.Group(**blobs))
