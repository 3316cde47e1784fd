"""Small data folders in Blender's format: one ball, seen from all sides, without any rendering."""

import json
import pathlib

import numpy as np

from scenegraph.io import write_picture


FOV_X = 0.7
COLOR = (200, 100, 50)


def look_at(eye, target=(0.0, 0.0, 0.0)) -> np.ndarray:
    """World from camera, with z up."""
    back = np.subtract(eye, target) / np.linalg.norm(np.subtract(eye, target))
    right = np.cross([0.0, 0.0, 1.0], back)
    right /= np.linalg.norm(right)
    pose = np.eye(4)
    pose[:3, :3] = np.stack([right, np.cross(back, right), back], axis=1)
    pose[:3, 3] = eye
    return pose


def eyes(count: int, distance: float = 4.0, seed: int = 0) -> np.ndarray:
    """Places on the upper half sphere."""
    places = np.random.default_rng(seed).normal(size=(count, 3))
    places[:, 2] = np.abs(places[:, 2])
    return distance * places / np.linalg.norm(places, axis=1, keepdims=True)


def ball_picture(pose: np.ndarray, size: int, center=(0.0, 0.0, 0.0), radius: float = 0.5):
    """RGBA of a ball with a hard edge; what is invisible is black."""
    focal = 0.5 * size / np.tan(0.5 * FOV_X)
    across = (np.arange(size) + 0.5 - 0.5 * size) / focal
    x, y = np.meshgrid(across, across)
    lines = np.stack([x, -y, -np.ones_like(x)], axis=-1) @ pose[:3, :3].T
    lines /= np.linalg.norm(lines, axis=-1, keepdims=True)
    offset = np.asarray(center) - pose[:3, 3]
    closest = np.linalg.norm(offset - (lines @ offset)[..., None] * lines, axis=-1)
    return np.where((closest < radius)[..., None], np.array([*COLOR, 255], np.uint8), np.uint8(0))


def write_split(folder: pathlib.Path, split: str, pictures, poses, **changes) -> pathlib.Path:
    """Pictures and their listing; `changes` are of the listing. Returns the listing's path."""
    frames = []
    for index, (picture, pose) in enumerate(zip(pictures, poses, strict=True)):
        (folder / split).mkdir(parents=True, exist_ok=True)
        write_picture(folder / split / f"r_{index}.png", picture)
        frames.append({"file_path": f"./{split}/r_{index}", "transform_matrix": pose.tolist()})
    listing = folder / f"transforms_{split}.json"
    listing.write_text(json.dumps({"camera_angle_x": FOV_X, "frames": frames} | changes))
    return listing


def write_ball(
    folder: pathlib.Path, splits, *, size: int = 16, center=(0.0, 0.0, 0.0), radius: float = 0.5
) -> pathlib.Path:
    """A data set of a ball, seen from eight radii away; `splits` says how many views each has."""
    for seed, (split, count) in enumerate(splits.items()):
        places = np.asarray(center) + eyes(count, 8 * radius, seed)
        poses = [look_at(place, center) for place in places]
        write_split(folder, split, [ball_picture(p, size, center, radius) for p in poses], poses)
    return folder
