"""Small data folders in LLFF's format."""

import pathlib

import numpy as np

from scenegraph.io import write_picture


def facing_poses(count: int, seed: int = 0) -> np.ndarray:
    """World from camera, roughly along -z of a tilted world, `count 4 4`."""
    rng = np.random.default_rng(seed)
    tilt, _ = np.linalg.qr(rng.normal(size=(3, 3)))
    tilt *= np.sign(np.linalg.det(tilt))
    poses = np.tile(np.eye(4), (count, 1, 1))
    for pose in poses:
        turn, _ = np.linalg.qr(np.eye(3) + 0.05 * rng.normal(size=(3, 3)))
        turn *= np.sign(np.diag(turn))
        pose[:3, :3] = tilt @ turn
        pose[:3, 3] = tilt @ (0.3 * rng.normal(size=3)) + [5, -3, 2]
    return poses


def inward_poses(count: int, seed: int = 0) -> np.ndarray:
    """World from camera, on a ring, looking at a point."""
    rng = np.random.default_rng(seed)
    poses = np.tile(np.eye(4), (count, 1, 1))
    for pose, angle in zip(poses, np.linspace(0, 2 * np.pi, count, endpoint=False), strict=True):
        place = 4 * np.array([np.cos(angle), np.sin(angle), 0.4 + 0.1 * rng.normal()])
        back = place / np.linalg.norm(place)
        right = np.cross([0, 0, 1], back)
        right /= np.linalg.norm(right)
        pose[:3] = np.stack([right, np.cross(back, right), back, place + [1, 2, 3]], axis=1)
    return poses


def write_llff(
    folder: pathlib.Path,
    poses: np.ndarray,
    pictures,
    *,
    factor: int = 1,
    focal: float = 20.0,
    name: str | None = None,
) -> pathlib.Path:
    """Pictures in `images` or `images_{factor}`, and `poses_bounds.npy` of the full size."""
    place = folder / (name or ("images" if factor == 1 else f"images_{factor}"))
    place.mkdir(parents=True)
    for index, picture in enumerate(pictures):
        write_picture(place / f"img_{index:02d}.png", picture)
    height, width = (factor * size for size in pictures[0].shape[:2])
    hwf = np.broadcast_to([[height], [width], [focal]], (len(poses), 3, 1))
    # Down, right, back, position, size.
    columns = [-poses[:, :3, 1:2], poses[:, :3, 0:1], poses[:, :3, 2:3], poses[:, :3, 3:4], hwf]
    table = np.concatenate(columns, axis=2).reshape(len(poses), 15)
    bounds = np.tile([2.0, 9.0], (len(poses), 1)) + np.arange(len(poses))[:, None] / 10
    np.save(folder / "poses_bounds.npy", np.concatenate([table, bounds], axis=1))
    return folder
