"""Hard visibility of triangles in plain numpy, and meshes to try it on."""

import numpy as np

from support.hard_surfaces import Camera


def flat_picture(triangles, colors, camera: Camera, samples: int) -> np.ndarray:
    """Means over `samples * samples` lines a pixel of the nearest triangle's colour, over black."""
    size = np.array([camera.width, camera.height])
    ahead = np.subtract(camera.target, camera.eye) / np.linalg.norm(
        np.subtract(camera.target, camera.eye)
    )
    right = np.cross(ahead, camera.up) / np.linalg.norm(np.cross(ahead, camera.up))
    axes = np.stack([right, -np.cross(right, ahead), ahead], axis=1)
    focal = camera.width / 2 / np.tan(camera.fov / 2)
    x, y = (((np.arange(n * samples) + 0.5) / samples - n / 2) / focal for n in size)
    nearest, rgb = np.full((len(y), len(x)), np.inf), np.zeros((len(y), len(x), 3))
    for corners, color in zip((triangles - camera.eye) @ axes, colors, strict=True):
        seen = (corners[:, :2] / corners[:, 2:] * focal + size / 2) * samples
        low = np.maximum(np.floor(seen.min(0)).astype(int) - 1, 0)
        high = np.minimum(np.ceil(seen.max(0)).astype(int) + 1, size * samples)
        part = np.s_[low[1] : max(high[1], low[1]), low[0] : max(high[0], low[0])]
        hit = _hit(corners, x[part[1]], y[part[0]])
        first = hit < nearest[part]
        nearest[part][first], rgb[part][first] = hit[first], color
    return rgb.reshape(camera.height, samples, camera.width, samples, 3).mean((1, 3))


def _hit(corners, x, y) -> np.ndarray:
    """Where lines along `(x, y, 1)` meet a triangle; infinite for those that miss."""
    lines = np.stack([*np.meshgrid(x, y), np.ones((len(y), len(x)))], axis=-1)
    a, b, c = corners
    edges = [lines @ np.cross(p, q) for p, q in ((a, b), (b, c), (c, a))]
    normal = np.cross(b - a, c - a)
    with np.errstate(all="ignore"):
        t = (a @ normal) / (lines @ normal)
    sides = np.stack(edges)
    inside = np.all(sides >= 0, axis=0) | np.all(sides <= 0, axis=0)
    return np.where(inside & (t > 0), t, np.inf)


def icosphere(level: int):
    """Vertices and faces of a ball of radius one: an icosahedron, split some times."""
    g = (1 + 5**0.5) / 2
    v = [(-1, g, 0), (1, g, 0), (-1, -g, 0), (1, -g, 0), (0, -1, g), (0, 1, g)]
    v = np.array([*v, (0, -1, -g), (0, 1, -g), (g, 0, -1), (g, 0, 1), (-g, 0, -1), (-g, 0, 1)])
    rows = "0 11 5 0 5 1 0 1 7 0 7 10 0 10 11 1 5 9 5 11 4 11 10 2 10 7 6 7 1 8"
    rows += " 3 9 4 3 4 2 3 2 6 3 6 8 3 8 9 4 9 5 2 4 11 6 2 10 8 6 7 9 8 1"
    f = np.array(rows.split(), int).reshape(-1, 3)
    for _ in range(level):
        pairs = np.sort(np.concatenate([f[:, [0, 1]], f[:, [1, 2]], f[:, [2, 0]]]), axis=1)
        pairs, place = np.unique(pairs, axis=0, return_inverse=True)
        (a, b, c), (ab, bc, ca) = f.T, len(v) + place.reshape(3, -1)
        v = np.concatenate([v, v[pairs].mean(1)])
        v /= np.linalg.norm(v, axis=1, keepdims=True)
        f = np.concatenate(
            [np.stack(x, 1) for x in ((a, ab, ca), (ab, b, bc), (ca, bc, c), (ab, bc, ca))]
        )
    return v / np.linalg.norm(v, axis=1, keepdims=True), f


def torus(around: int, across: int, inner: float = 0.4):
    """Vertices and faces of a ring of radius one about z."""
    i, j = np.meshgrid(np.arange(around), np.arange(across), indexing="ij")
    u, w = 2 * np.pi * i / around, 2 * np.pi * j / across
    far = 1 + inner * np.cos(w)
    v = np.stack([far * np.cos(u), far * np.sin(u), inner * np.sin(w)], axis=-1)
    at = lambda a, b: ((i + a) % around) * across + (j + b) % across
    one = np.stack([at(0, 0), at(1, 0), at(1, 1)], axis=-1)
    other = np.stack([at(0, 0), at(1, 1), at(0, 1)], axis=-1)
    return v.reshape(-1, 3), np.concatenate([one, other]).reshape(-1, 3)


def slab(half):
    """Vertices and faces of a box of half sides."""
    v = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)]) * np.array(half)
    quads = np.array("0 1 3 2 4 6 7 5 0 4 5 1 2 3 7 6 0 2 6 4 1 5 7 3".split(), int).reshape(-1, 4)
    return v, np.concatenate([quads[:, [0, 1, 2]], quads[:, [0, 2, 3]]])
