"""Small captures as other programs write them, from closed forms in double precision."""

import json
import math
import pathlib

import numpy as np
from PIL import Image


W, H, F = 20, 16, 30.0
POINT = np.array([0.5, 0.3, 0.4])


def look(eye, up=(0, 0, 1)) -> np.ndarray:
    """World from camera at `eye`, looking at the origin, OpenGL's axes."""
    eye = np.asarray(eye, float)
    back = eye / np.linalg.norm(eye)
    right = np.cross(up, back)
    right /= np.linalg.norm(right)
    pose = np.eye(4)
    pose[:3] = np.stack([right, np.cross(back, right), back, eye], axis=1)
    return pose


def arc(count: int, degrees: float = 360.0, radius: float = 4.0, height: float = 1.0) -> list:
    """Cameras on a part of a ring about the z axis."""
    angles = np.radians(degrees) * np.arange(count) / count
    return [look((radius * math.cos(a), radius * math.sin(a), height)) for a in angles]


def plain(index: int, height: int = H, width: int = W) -> np.ndarray:
    return np.full((height, width, 3), 20 * (index + 1) % 256, np.uint8)


def save(path: pathlib.Path, picture: np.ndarray) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(picture).save(path)


def pictures(folder: pathlib.Path, count: int, place: str = "images", **size) -> pathlib.Path:
    for index in range(count):
        save(folder / place / f"{index}.png", plain(index, **size))
    return folder


def listing(
    folder: pathlib.Path,
    name: str,
    head: dict,
    poses: list,
    path: str = "images/{}.png",
    frame=lambda index: {},
) -> pathlib.Path:
    """Writes a listing of pictures, and returns its path."""
    frames = [
        {"file_path": path.format(index), "transform_matrix": pose.tolist(), **frame(index)}
        for index, pose in enumerate(poses)
    ]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(json.dumps({**head, "frames": frames}))
    return folder / name


def poses_bounds(folder: pathlib.Path, poses: list, bounds=(2.8, 9.0)) -> None:
    """Writes LLFF's table: columns down, right, back, place and size, then two depths."""
    rows = [
        [
            *np.stack([-p[:3, 1], p[:3, 0], p[:3, 2], p[:3, 3], [H, W, F]], axis=1).ravel(),
            *bounds,
        ]
        for p in poses
    ]
    folder.mkdir(parents=True, exist_ok=True)
    np.save(folder / "poses_bounds.npy", np.array(rows))


def quaternion(rotation: np.ndarray) -> list[float]:
    """Returns w, x, y, z of a rotation."""
    from scipy.spatial.transform import Rotation

    x, y, z, w = Rotation.from_matrix(rotation).as_quat()
    return [w, x, y, z]


def colmap(
    folder: pathlib.Path,
    poses: list,
    model: str = "sparse/0",
    name: str = "{}.png",
    camera: str = f"PINHOLE {W} {H} {F} {F} {W / 2} {H / 2}",
) -> None:
    """Writes a model as text; `poses` have OpenGL's axes, in COLMAP's own world."""
    out = folder / model
    out.mkdir(parents=True)
    lines = ["# images"]
    for index, pose in enumerate(poses):
        matrix = np.linalg.inv(pose @ np.diag([1, -1, -1, 1.0]))
        numbers = [*quaternion(matrix[:3, :3]), *matrix[:3, 3]]
        lines += [f"{index + 1} {' '.join(map(repr, map(float, numbers)))} 1 {name.format(index)}"]
        lines += [""]
    (out / "cameras.txt").write_text(f"1 {camera}\n")
    (out / "images.txt").write_text("\n".join(lines) + "\n")
    (out / "points3D.txt").write_text("1 0 0 0 9 9 9 0.5\n2 0.3 0.2 0.1 9 9 9 0.5\n")


def projected(pose: np.ndarray, focal, centre, point=POINT) -> np.ndarray:
    """The pixel at which a pinhole sees a point."""
    x, y, z, _ = np.linalg.inv(pose) @ np.append(point, 1.0)
    return np.array([centre[0] - focal[0] * x / z, centre[1] + focal[1] * y / z])
