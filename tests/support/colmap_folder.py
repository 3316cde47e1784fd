"""Sparse models of COLMAP by a naive writer, and COLMAP's own in `tests/golden/colmap`."""

import pathlib
import shutil
import struct

import numpy as np

from support.helpers import GOLDEN


NUMBERS = {"SIMPLE_PINHOLE": 0, "SIMPLE_RADIAL": 2, "OPENCV": 4, "FOV": 7, "EUCM": 16}
NUMBERS["OPENCV_FISHEYE"] = 5
# Id, model, width, height, parameters.
CAMERAS = [(3, "OPENCV", 32, 24, [30.0, 28.0, 15.5, 12.5, -0.1, 0.02, 0.003, -0.002])]
# Id, quaternion, translation, camera, name, points as (x, y, id).
IMAGES = [
    (7, [0.5, 0.5, -0.5, 0.5], [0.1, 0.2, 3.0], 3, "b c.png", [(1.5, 2.5, 4), (3.0, 4.0, -1)]),
    (2, [0.6, 0.0, 0.8, 0.0], [0.0, -0.2, 2.5], 3, "a.png", []),
]
# Id, place, colour, error, track as (image, point of it).
POINTS = [
    (4, [0.1, 0.2, -0.3], [10, 20, 255], 0.5, [(7, 0), (2, 0)]),
    (9, [1.0, -2.0, 0.5], [0, 128, 1], 0.25, []),
]
MODEL = CAMERAS, IMAGES, POINTS


def write_binary(folder: pathlib.Path, cameras, images, points) -> pathlib.Path:
    folder.mkdir(parents=True, exist_ok=True)
    data = struct.pack("<Q", len(cameras))
    for number, model, width, height, values in cameras:
        data += struct.pack("<IiQQ", number, NUMBERS.get(model, model), width, height)
        data += struct.pack(f"<{len(values)}d", *values)
    (folder / "cameras.bin").write_bytes(data)
    data = struct.pack("<Q", len(images))
    for number, rotation, translation, camera, name, seen in images:
        data += struct.pack("<I7dI", number, *rotation, *translation, camera)
        data += name.encode() + b"\0" + struct.pack("<Q", len(seen))
        data += b"".join(struct.pack("<ddq", *point) for point in seen)
    (folder / "images.bin").write_bytes(data)
    data = struct.pack("<Q", len(points))
    for number, place, color, error, track in points:
        data += struct.pack("<Q3d3BdQ", number, *place, *color, error, len(track))
        data += b"".join(struct.pack("<II", *entry) for entry in track)
    (folder / "points3D.bin").write_bytes(data)
    return folder


def words(*parts) -> str:
    return " ".join(
        str(part) for part in np.concatenate([np.ravel(np.array(p, object)) for p in parts])
    )


def write_text(folder: pathlib.Path, cameras, images, points) -> pathlib.Path:
    folder.mkdir(parents=True, exist_ok=True)
    lines = ["# A comment", *(words(*camera) for camera in cameras)]
    (folder / "cameras.txt").write_text("\n".join(lines) + "\n")
    lines = ["# Two lines an image"]
    for *image, seen in images:
        lines += [words(*image), words(*seen) if seen else ""]
    (folder / "images.txt").write_text("\n".join(lines) + "\n")
    lines = ["# Points", *(words(*point[:4], *point[4]) for point in points)]
    (folder / "points3D.txt").write_text("\n".join(lines) + "\n")
    return folder


WRITERS = {"binary": write_binary, "text": write_text}


def copy_golden(folder: pathlib.Path, encoding: str) -> pathlib.Path:
    """What pycolmap 4.2.1 has written; one picture of each model, which all see all points."""
    folder.mkdir(parents=True, exist_ok=True)
    for file in (GOLDEN / "colmap").glob({"binary": "*.bin", "text": "*.txt"}[encoding]):
        shutil.copy(file, folder)
    return folder


def golden_pixels() -> dict[str, np.ndarray]:
    """Where COLMAP itself sees the points of its model, in order of their ids, by picture."""
    lines = (GOLDEN / "colmap" / "images.txt").read_text().splitlines()[4:]
    seen = {}
    for image, points in zip(lines[::2], lines[1::2], strict=True):
        table = np.array(points.split(), float).reshape(-1, 3)
        seen[image.split()[-1]] = table[np.argsort(table[:, 2]), :2]
    return seen
