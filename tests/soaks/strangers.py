"""Data folders of strangers: an error that names the file, or exactly what the files say."""

import copy
import json
import math
import pathlib
import struct
import tempfile
import time
import zlib
from collections import Counter
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
from hypothesis import given, settings, strategies as st
from PIL import Image as PillowImage

import scenegraph as sg
from blender_folder import ball_picture, eyes, look_at, write_split
from scenegraph.io import FileError
from soaks.damage import altered, no_longer_than


# --- Documents with something else in some places

SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(),
    st.text(max_size=20),
    st.sampled_from(
        ["../../etc/passwd", "/etc/passwd", "./train", "\0", "train/r_0.png", "😀", "."]
    ),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=8,
)
# Which place, what is done there, and with what.
CHANGES = st.lists(
    st.tuples(st.integers(0, 10**6), st.sampled_from(["set", "scale", "drop", "double"]), VALUES),
    min_size=1,
    max_size=3,
)


def places(node: Any) -> list[tuple[Any, Any]]:
    """Every container in a document, with every key in it."""
    keys = node.keys() if isinstance(node, dict) else range(len(node))
    found = [(node, key) for key in keys]
    inner = [node[key] for key in keys if isinstance(node[key], dict | list)]
    return found + [place for child in inner for place in places(child)]


def changed(document: Any, changes: list) -> Any:
    """The document with a few changes."""
    document = copy.deepcopy(document)
    for number, kind, value in changes:
        where = places(document)
        if not where:
            break
        node, key = where[number % len(where)]
        if kind == "scale" and isinstance(node[key], int | float):
            node[key] = 1.0000001 * node[key]
        elif kind == "drop":
            del node[key]
        elif kind == "double" and isinstance(node, list):
            node.insert(key, copy.deepcopy(node[key]))
        else:
            node[key] = value
    return document


# --- What a folder says, worked out with other means


def said(listing: pathlib.Path) -> tuple[float, np.ndarray, list[np.ndarray]]:
    """Angle, poses and pictures; raises whatever it likes where that makes no sense."""
    document = json.loads(listing.read_text(encoding="utf-8"))
    poses = np.array([frame["transform_matrix"] for frame in document["frames"]], np.float64)
    files = [listing.parent / frame["file_path"] for frame in document["frames"]]
    named = [
        file if file.suffix == ".png" else file.with_name(f"{file.name}.png") for file in files
    ]
    return document["camera_angle_x"], poses, [pixels_of(file) for file in named]


def pixels_of(file: pathlib.Path) -> np.ndarray:
    with PillowImage.open(file) as picture:
        has_alpha = "A" in picture.getbands() or "transparency" in picture.info
        return np.asarray(picture.convert("RGBA" if has_alpha else "RGB"))


def is_right(views: sg.Views, listing: pathlib.Path) -> bool:
    """Whether all cameras and pixels are those of the files."""
    angle, poses, pictures = said(listing)
    stacked = np.stack(pictures)
    if not np.array_equal(views.pixels, stacked.reshape(-1, stacked.shape[-1])):
        return False
    height, width = pictures[0].shape[:2]
    corners = [jnp.array([0.0, 0.0]), jnp.array([width / 2, height / 2])]
    focal = 0.5 * width / math.tan(angle / 2)
    for frame, pose in enumerate(poses):
        camera = views.camera(frame)
        origin, lines = np.array([camera.line(corner) for corner in corners], np.float64).swapaxes(
            0, 1
        )
        lines = lines / np.linalg.norm(lines, axis=1, keepdims=True)
        expected = np.array([[-0.5 * width, 0.5 * height, -focal], [0, 0, -focal]])
        expected = expected / np.linalg.norm(expected, axis=1, keepdims=True) @ pose[:3, :3].T
        # A rotation may be off by a thousandth in the file, and is taken as it is or made one.
        if np.abs(lines - expected).max() > 5e-3 or not np.allclose(origin, pose[:3, 3], 1e-5):
            return False
    return views.frames == len(poses)


def outcome(folder: pathlib.Path, listing: pathlib.Path) -> str:
    """What became of a folder: `refused`, `right`, or something that must not be."""
    with no_longer_than(60):
        try:
            views = sg.load_blender(folder, "train")
        except FileError as error:
            return "refused" if str(folder) in str(error) else f"does not name the file: {error}"
        except Exception as error:  # noqa: BLE001 - whatever it is, it is wrong
            return f"{type(error).__name__}: {error}"
    return "right" if is_right(views, listing) else "OTHER NUMBERS"


def write_folder(folder: pathlib.Path) -> pathlib.Path:
    poses = [look_at(place) for place in eyes(2)]
    return write_split(folder, "train", [ball_picture(pose, 6) for pose in poses], poses)


# --- Each kind of file

Spoil = Callable[[bytes, Any], bytes]


def spoilt_document(data: bytes, change: Any) -> bytes:
    if isinstance(change, int):
        return altered(data, np.random.default_rng(change))
    return json.dumps(changed(json.loads(data), change)).encode("utf-8", "surrogatepass")


def spoilt_picture(data: bytes, change: int) -> bytes:
    """Damaged bytes; or a chunk that is wrong, with its checksum put right."""
    rng = np.random.default_rng(change)
    if change % 2:
        return altered(data, rng)
    chunks, at = [], 8
    while at < len(data):
        (size,) = struct.unpack(">I", data[at : at + 4])
        chunks.append((data[at + 4 : at + 8], data[at + 8 : at + 8 + size]))
        at += 12 + size
    which = int(rng.integers(len(chunks)))
    name, body = chunks[which]
    chunks[which] = name, altered(body, rng) if body else rng.bytes(3)
    if change % 8 == 0:
        chunks.insert(which, chunks[int(rng.integers(len(chunks)))])
    out = [
        struct.pack(">I", len(b)) + n + b + struct.pack(">I", zlib.crc32(n + b)) for n, b in chunks
    ]
    return data[:8] + b"".join(out)


KINDS: dict[str, tuple[str, Any, Spoil]] = {
    "transforms.json": (
        "transforms_train.json",
        CHANGES | st.integers(0, 2**32 - 1),
        spoilt_document,
    ),
    "PNG": ("train/r_0.png", st.integers(0, 2**32 - 1), spoilt_picture),
}


def strange_files(kind: str, examples: int, seconds: float = math.inf) -> dict[str, Any]:
    """Loads so many folders in which one file is strange, or as many as there is time for."""
    name, changes, spoil = KINDS[kind]
    seen: Counter[str] = Counter()
    begin = time.perf_counter()
    with tempfile.TemporaryDirectory() as place:
        folder = pathlib.Path(place)
        listing = write_folder(folder)
        data = (folder / name).read_bytes()
        assert outcome(folder, listing) == "right"

        @settings(max_examples=examples, deadline=None, derandomize=True, database=None)
        @given(changes)
        def try_one(change: Any) -> None:
            if time.perf_counter() - begin > seconds:
                return
            (folder / name).write_bytes(spoil(data, change))
            found = outcome(folder, listing)
            seen[found] += 1
            assert found in ("refused", "right"), f"{found} for {change}"

        try_one()
    return {**seen, "seconds": round(time.perf_counter() - begin, 1)}


def main(examples: int = 5000, minutes: float = 30.0) -> dict[str, Any]:
    """So many strange files of each kind, or as many as there is time for."""
    return {kind: strange_files(kind, examples, 60 * minutes) for kind in KINDS}
