"""The scene of the benchmark of meshes: a ring with bumps over a floor, and a lamp with shadows."""

import math

import numpy as np

import scenegraph as sg


SIZE = 512
LAMP, POWER = (2.0, -2.0, 5.0), 40.0
EYE, TARGET, FOV = (0.0, -4.5, 3.0), (0.0, 0.0, 0.1), 0.7
RING, FLOOR, GROUND = (0.8, 0.4, 0.2), (0.6, 0.6, 0.6), -0.6


def ring(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Vertices and faces, about `count`, of a ring of radius one with bumps."""
    across = round(math.sqrt(count) / 2)
    around = 2 * (count // (4 * across))
    i, j = np.meshgrid(np.arange(around), np.arange(across), indexing="ij")
    u, w = 2 * np.pi * i / around, 2 * np.pi * j / across
    inner = 0.4 + 0.03 * np.sin(11 * u) * np.sin(7 * w)
    far = 1 + inner * np.cos(w)
    points = np.stack([far * np.cos(u), far * np.sin(u), inner * np.sin(w)], axis=-1)
    at = lambda a, b: ((i + a) % around) * across + (j + b) % across
    corners = (at(0, 0), at(1, 0), at(1, 1)), (at(0, 0), at(1, 1), at(0, 1))
    faces = np.concatenate([np.stack(x, axis=-1).reshape(-1, 3) for x in corners])
    return points.reshape(-1, 3).astype(np.float32), faces.astype(np.int32)


def camera() -> sg.PerspectiveCamera:
    """From above and before."""
    return sg.PerspectiveCamera.look_at(EYE, TARGET, [0, 0, 1], FOV, SIZE, SIZE)


def ours(count: int) -> sg.Scene:
    """The ring of so many triangles."""
    mesh = sg.Surface(sg.TriangleMesh(*ring(count)), sg.Lambert(RING))
    floor = sg.Surface(sg.Plane([0, 0, GROUND]), sg.Lambert(FLOOR))
    lamp = sg.PointLight(LAMP, [POWER] * 3)
    return sg.Scene(sg.Group(ring=mesh, floor=floor, lamp=lamp))
