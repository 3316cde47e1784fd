"""Photographs of textured boxes on a table, cast by NumPy, with the poses they were taken from."""

import pathlib
from typing import NamedTuple

import numpy as np
from PIL import Image as PillowImage


class Rectangle(NamedTuple):
    """A textured rectangle: a corner, two edges at right angles, and a texture `n n 3`."""

    corner: np.ndarray
    right: np.ndarray
    up: np.ndarray
    texture: np.ndarray


def noise(seed: int, resolution: int = 512) -> np.ndarray:
    """A picture of blots of all sizes, `resolution resolution 3`, of bytes."""
    random, total = np.random.default_rng(seed), np.zeros((resolution, resolution, 3))
    for octave in range(3, int(np.log2(resolution)) + 1):
        side = 2**octave
        blots = (255 * random.random((side, side, 3))).astype(np.uint8)
        large = PillowImage.fromarray(blots).resize((resolution, resolution), 3)
        total += (np.asarray(large, float) - 128) * 1.3**-octave
    total = 128 + 60 * total / total.std()
    return np.clip(total, 0, 255).astype(np.uint8)


def boxes_on_table(*, resolution: int = 256, seed: int = 0) -> list[Rectangle]:
    """A table of 6 x 6 at z = 0, and five boxes on it."""
    table = Rectangle(
        np.array([-3.0, -3, 0]),
        np.array([6.0, 0, 0]),
        np.array([0.0, 6, 0]),
        noise(seed, resolution),
    )
    parts = [table]
    random = np.random.default_rng(1)
    for number, (x, y) in enumerate([(0, 0), (-1.1, 0.6), (1.0, 0.9), (0.7, -1.1), (-0.8, -0.9)]):
        half, height = random.uniform(0.25, 0.45), random.uniform(0.4, 1.1)
        low = np.array([x - half, y - half, 0])
        a, b, c = np.array([2 * half, 0, 0]), np.array([0, 2 * half, 0]), np.array([0, 0, height])
        sides = [(low, a, c), (low, b, c), (low + b, a, c), (low + a, b, c), (low + c, a, b)]
        for side, (corner, right, up) in enumerate(sides):
            texture = noise(seed + 10 + 5 * number + side, resolution // 2)
            parts.append(Rectangle(corner, right, up, texture))
    return parts


def look_at(eye: np.ndarray, target: np.ndarray) -> np.ndarray:
    """A pose, world from camera, with OpenGL's axes and z upwards."""
    back = (eye - target) / np.linalg.norm(eye - target)
    right = np.cross([0.0, 0.0, 1.0], back)
    right /= np.linalg.norm(right)
    pose = np.eye(4)
    pose[:3] = np.stack([right, np.cross(back, right), back, eye], axis=1)
    return pose


def around(count: int, *, turns: float = 0.5, distance: float = 4.0) -> list[np.ndarray]:
    """Poses on an arc about the table, at heights that go up and down."""
    angles = 2 * np.pi * turns * np.arange(count) / count
    heights = 1.8 + 0.5 * np.sin(3 * angles)
    return [
        look_at(np.array([distance * np.cos(a), distance * np.sin(a), h]), np.array([0, 0, 0.3]))
        for a, h in zip(angles, heights, strict=True)
    ]


def photograph(
    scene: list[Rectangle], pose: np.ndarray, width: int, height: int, focal: float
) -> np.ndarray:
    """A picture of the rectangles, `height width 3`, of bytes; the nearest is seen."""
    picture = np.full((height, width, 3), (168, 176, 190), np.uint8)
    nearest = np.full((height, width), np.inf, np.float32)
    for part in scene:
        rows, columns = _window(part, pose, width, height, focal)
        _cast(part, pose, picture[rows, columns], nearest[rows, columns], (rows, columns), focal)
    return picture


def _window(
    part: Rectangle, pose: np.ndarray, width: int, height: int, focal: float
) -> tuple[slice, slice]:
    """The rows and columns in which a rectangle may be seen."""
    corners = part.corner + np.array([0 * part.up, part.right, part.up, part.right + part.up])
    local = (corners - pose[:3, 3]) @ pose[:3, :3]
    if (local[:, 2] > -1e-2).any():
        return slice(0, height), slice(0, width)
    x = width / 2 - focal * local[:, 0] / local[:, 2]
    y = height / 2 + focal * local[:, 1] / local[:, 2]
    low = np.clip(np.floor([y.min(), x.min()]).astype(int), 0, [height, width])
    high = np.clip(np.ceil([y.max(), x.max()]).astype(int) + 1, 0, [height, width])
    return slice(low[0], high[0]), slice(low[1], high[1])


def _cast(
    part: Rectangle,
    pose: np.ndarray,
    picture: np.ndarray,
    nearest: np.ndarray,
    window: tuple[slice, slice],
    focal: float,
) -> None:
    """Draws a rectangle into a window of a picture, where it is the nearest."""
    # The window's rows are counted from the middle of the whole picture.
    whole = picture.base
    height, width = whole.shape[:2]
    rows, columns = window
    x = (np.arange(columns.start, columns.stop, dtype=np.float32) + 0.5 - width / 2) / focal
    y = -(np.arange(rows.start, rows.stop, dtype=np.float32) + 0.5 - height / 2) / focal
    turn, eye = pose[:3, :3].astype(np.float32), pose[:3, 3]
    normal = np.cross(part.right, part.up)

    def along(axis: np.ndarray) -> np.ndarray:
        """The component of every ray along an axis of the world."""
        a, b, c = (axis @ turn).astype(np.float32)
        return a * x + (b * y)[:, None] - c

    with np.errstate(divide="ignore", invalid="ignore"):
        # n . (o + t d - c) = 0
        t = np.float32(normal @ (part.corner - eye)) / along(normal)
        u, v = (
            t * along(edge) + np.float32(edge @ (eye - part.corner))
            for edge in (part.right / (part.right @ part.right), part.up / (part.up @ part.up))
        )
        seen = (t > 1e-3) & (t < nearest) & (u >= 0) & (u < 1) & (v >= 0) & (v < 1)
    nearest[seen] = t[seen]
    size = part.texture.shape[0]
    picture[seen] = part.texture[(v[seen] * size).astype(int), (u[seen] * size).astype(int)]


def write_photographs(
    folder: pathlib.Path, poses: list[np.ndarray], *, width: int = 400, height: int = 300
) -> dict[str, np.ndarray]:
    """Writes pictures from poses, each averaged over 2 x 2 pixels; returns poses by name."""
    folder.mkdir(parents=True, exist_ok=True)
    scene, named = boxes_on_table(), {}
    for number, pose in enumerate(poses):
        fine = photograph(scene, pose, 2 * width, 2 * height, 2.0 * width)
        mean = fine.reshape(height, 2, width, 2, 3).mean(axis=(1, 3))
        name = f"{number:03d}.jpg"
        PillowImage.fromarray(mean.astype(np.uint8)).save(folder / name, quality=92)
        named[name] = pose
    return named


def pose_errors(found: dict[str, np.ndarray], true: dict[str, np.ndarray]) -> np.ndarray:
    """Errors after the best similarity, `n 2`: of places, in mean distances from what the cameras
    look at, and of angles, in degrees."""
    names = sorted(found)
    x = np.array([found[name][:3, 3] for name in names])
    y = np.array([true[name][:3, 3] for name in names])
    # Umeyama 1991: of the covariance U S V^T, the rotation U V^T and the scale tr S / var x.
    left, spread, right = np.linalg.svd((y - y.mean(0)).T @ (x - x.mean(0)))
    sign = np.diag([1, 1, np.linalg.det(left @ right)])
    turn = left @ sign @ right
    scale = np.sum(spread * np.diag(sign)) / np.sum((x - x.mean(0)) ** 2)
    moved = scale * (x - x.mean(0)) @ turn.T + y.mean(0)
    axes = np.array([true[name][:3, 2] for name in names])
    across = np.eye(3) - axes[:, :, None] * axes[:, None]
    centre = np.linalg.solve(across.sum(0), np.einsum("nij,nj->i", across, y))
    places = np.linalg.norm(moved - y, axis=1) / np.linalg.norm(y - centre, axis=1).mean()
    turns = [turn @ found[name][:3, :3] @ true[name][:3, :3].T for name in names]
    angles = [np.degrees(np.arccos(np.clip((np.trace(one) - 1) / 2, -1, 1))) for one in turns]
    return np.stack([places, angles], axis=1)
