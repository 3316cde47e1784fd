"""Small data folders in the format of nerfstudio: a listing, and pictures of noise."""

import json
import pathlib
from typing import Any

import numpy as np

from scenegraph.io import write_picture
from support.blender_folder import eyes, look_at


POSES = [look_at(eye) for eye in eyes(10)]
NAMES = [f"images/{letter}.png" for letter in "cabdefghij"]
BENT = dict(k1=-0.1, k2=0.02, p1=0.003, p2=-0.002)
LENS = dict(camera_model="OPENCV", fl_x=9.0, fl_y=8.5, cx=4.5, cy=2.75, w=8, h=6, **BENT)


def noise(seed: int, width: int, height: int, channels: int = 3) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (height, width, channels), np.uint8)


def frames(count: int) -> list[dict[str, Any]]:
    """Named so that their order is not that of their names."""
    return [
        {"file_path": name, "transform_matrix": pose.tolist()}
        for name, pose in zip(NAMES[:count], POSES, strict=False)
    ]


def write_transforms(
    folder: pathlib.Path, listing: dict[str, Any], sizes: list[tuple[int, int]] | None = None
) -> pathlib.Path:
    """The listing, and for each of its frames a picture; 8x6 pixels, or of these sizes."""
    (folder / "images").mkdir(parents=True, exist_ok=True)
    for index, frame in enumerate(listing["frames"]):
        size = (8, 6) if sizes is None else sizes[index]
        write_picture(folder / frame["file_path"], noise(index, *size))
    (folder / "transforms.json").write_text(json.dumps(listing))
    return folder
