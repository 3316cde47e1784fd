"""COLMAP's sparse models: files of cameras, images and points, binary or as text.

pycolmap reads them, too; it brings COLMAP's whole engine, some 40 MB of compiled code.
"""

import os
import pathlib
import struct
from collections.abc import Callable, Iterator
from typing import NamedTuple, TypeAlias

import numpy as np

from ._errors import FileError
from ._read import read_bytes


# Number, name and parameters of every model, as `colmap/sensor/models.h` of COLMAP 4.2 has them.
_MODELS = {
    0: ("SIMPLE_PINHOLE", "f cx cy"),
    1: ("PINHOLE", "fx fy cx cy"),
    2: ("SIMPLE_RADIAL", "f cx cy k1"),
    3: ("RADIAL", "f cx cy k1 k2"),
    4: ("OPENCV", "fx fy cx cy k1 k2 p1 p2"),
    5: ("OPENCV_FISHEYE", "fx fy cx cy k1 k2 k3 k4"),
    6: ("FULL_OPENCV", "fx fy cx cy k1 k2 p1 p2 k3 k4 k5 k6"),
    7: ("FOV", "fx fy cx cy omega"),
    8: ("SIMPLE_RADIAL_FISHEYE", "f cx cy k1"),
    9: ("RADIAL_FISHEYE", "f cx cy k1 k2"),
    10: ("THIN_PRISM_FISHEYE", "fx fy cx cy k1 k2 p1 p2 k3 k4 sx1 sy1"),
    11: ("RAD_TAN_THIN_PRISM_FISHEYE", "fx fy cx cy k0 k1 k2 k3 k4 k5 p0 p1 s0 s1 s2 s3"),
    12: ("SIMPLE_DIVISION", "f cx cy k"),
    13: ("DIVISION", "fx fy cx cy k"),
    14: ("SIMPLE_FISHEYE", "f cx cy"),
    15: ("FISHEYE", "fx fy cx cy"),
    16: ("EUCM", "fx fy cx cy alpha beta"),
    17: ("EQUIRECTANGULAR", "w h"),
}
_NUMBERS = {name: number for number, (name, _) in _MODELS.items()}
# More than any number of pixels, and any number that makes sense.
_LARGEST, _HUGE = 2**20, 1e30
# A place in a picture, and the id of the point that it shows; the largest id.
_SEEN, _MOST = np.dtype([("x", "<f8"), ("y", "<f8"), ("point", "<i8")]), 2**63 - 1
# Places, colours and ids of points.
_Points: TypeAlias = tuple[np.ndarray, np.ndarray, np.ndarray]


class ColmapCamera(NamedTuple):
    """A camera model with its parameters."""

    model: str  # the model's name in COLMAP
    width: int
    height: int
    parameters: dict[str, float]  # by COLMAP's names; the `k` of SIMPLE_RADIAL is `k1`


class ColmapImage(NamedTuple):
    """A picture with its pose."""

    number: int  # the picture's id in COLMAP
    name: str  # the file's name, relative to the folder of pictures
    camera: int  # the id of the camera
    rotation: np.ndarray  # the rotation camera from world, a unit quaternion `(w, x, y, z)`, `4`
    translation: np.ndarray
    places: np.ndarray = np.zeros((0, 2))  # where points were found, in pixels, `seen 2`
    points: np.ndarray = np.zeros(0, np.int64)  # their ids, `seen`; -1 for no point


class ColmapModel(NamedTuple):
    """A sparse reconstruction."""

    cameras: dict[int, ColmapCamera]  # the cameras by id
    images: list[ColmapImage]  # the pictures, in the order of the file
    points: np.ndarray  # the points in the world, `n 3`, float64
    colors: np.ndarray  # the points' colours, `n 3`, bytes
    numbers: np.ndarray = np.zeros(0, np.int64)  # the points' ids, `n`


def read_colmap(folder: str | os.PathLike) -> ColmapModel:
    """Reads a sparse model; where there are binary files and text, the binary ones."""
    folder = pathlib.Path(folder)
    kinds = [kind for kind in (".bin", ".txt") if (folder / f"cameras{kind}").is_file()]
    if not kinds:
        raise FileError(
            f"there is no cameras.bin or cameras.txt in {folder}; pass the folder of a sparse "
            "model, which COLMAP calls sparse/0."
        )
    paths = [folder / f"{name}{kinds[0]}" for name in ("cameras", "images", "points3D")]
    cameras, images, points = _BINARY if kinds[0] == ".bin" else _TEXT
    seen = points(paths[2]) if paths[2].exists() else _make_points(paths[2], [])
    model = ColmapModel(cameras(paths[0]), images(paths[1]), *seen)
    for image in model.images:
        if image.camera not in model.cameras:
            raise FileError(f"{paths[1]}: image {image.name!r} has an unknown camera.")
    return model


# --- Binary files


class _Bytes:
    """A cursor over the bytes of a file; counts and sizes that do not fit in it are refused."""

    def __init__(self, path: pathlib.Path):
        self.path, self.place = path, 0
        self.data = read_bytes(path)

    def take(self, layout: str) -> tuple:
        """Reads little-endian numbers."""
        start = self.place
        self.skip(struct.calcsize("<" + layout))
        return struct.unpack_from("<" + layout, self.data, start)

    def skip(self, size: int) -> None:
        """Skips bytes."""
        if size > len(self.data) - self.place:
            raise FileError(f"{self.path} is cut: it ends in the middle of an entry.")
        self.place += size

    def count(self, least: int) -> int:
        """Reads a count of entries, each of which has at least `least` bytes."""
        (count,) = self.take("Q")
        if count * least > len(self.data) - self.place:
            raise FileError(f"{self.path} is cut: it ends before the last of {count} entries.")
        return count

    def table(self, layout: np.dtype) -> np.ndarray:
        """Reads a count of entries of one layout, and these."""
        count, start = self.count(layout.itemsize), self.place
        self.skip(layout.itemsize * count)
        return np.frombuffer(self.data, layout, count, start)

    def text(self) -> str:
        """Reads text up to a zero byte."""
        end = self.data.find(b"\0", self.place)
        if end < 0:
            raise FileError(f"{self.path} is cut: it ends in the middle of a name.")
        start, self.place = self.place, end + 1
        try:
            return self.data[start:end].decode()
        except UnicodeDecodeError as error:
            raise FileError(f"{self.path} has a name that is not text ({error}).") from error

    def entries(self, least: int) -> Iterator[int]:
        """Counts through all entries of the file; after the last one nothing may be left."""
        yield from range(self.count(least))
        if self.place != len(self.data):
            raise FileError(f"{self.path} is damaged: bytes are left after its last entry.")


def _binary_cameras(path: pathlib.Path) -> dict[int, ColmapCamera]:
    data, cameras = _Bytes(path), {}
    for _ in data.entries(24):
        number, model, width, height = data.take("IiQQ")
        if model not in _MODELS:
            raise FileError(f"{path}: camera {number} has the unknown model {model}.")
        values = data.take(f"{len(_names(model))}d")
        _add_camera(str(path), cameras, number, model, width, height, values)
    return cameras


def _binary_images(path: pathlib.Path) -> list[ColmapImage]:
    # An entry: id, quaternion, translation, camera, name, then points (x, y, id of the 3D point).
    data, images = _Bytes(path), []
    for _ in data.entries(73):
        number, *pose, camera = data.take("I7dI")
        image = _make_image(str(path), number, data.text(), camera, pose)
        images.append(_with_seen(image, data.table(_SEEN)))
    return images


def _binary_points(path: pathlib.Path) -> _Points:
    # An entry: id, position, colour, error, then the track (image, index in it).
    data, points = _Bytes(path), []
    for _ in data.entries(51):
        points.append(data.take("Q3d3Bd")[:7])
        data.skip(8 * data.count(8))
    return _make_points(path, points)


# --- Text


def _lines(path: pathlib.Path) -> Iterator[tuple[str, str]]:
    """Yields all lines but comments, each with its place for messages."""
    try:
        lines = read_bytes(path).decode("utf-8-sig").splitlines()
    except UnicodeDecodeError as error:
        raise FileError(f"cannot read {path}: {error}.") from error
    for index, line in enumerate(lines):
        if not line.lstrip().startswith("#"):
            yield f"{path}, line {index + 1}", line.strip()


def _parse(where: str, kind: Callable, words: list[str], least: int) -> list:
    if len(words) < least:
        raise FileError(f"{where}: {len(words)} numbers where {least} are needed.")
    try:
        return [kind(word) for word in words]
    except (ValueError, OverflowError) as error:
        raise FileError(f"{where} is malformed: {error}.") from error


def _text_cameras(path: pathlib.Path) -> dict[int, ColmapCamera]:
    cameras: dict[int, ColmapCamera] = {}
    for where, line in _lines(path):
        if not line:
            continue
        words = line.split()
        number, width, height = _parse(where, int, [*words[:1], *words[2:4]], 3)
        if words[1] not in _NUMBERS:
            raise FileError(f"{where}: the camera has the unknown model {words[1]!r}.")
        model = _NUMBERS[words[1]]
        values = _parse(where, float, words[4:], len(_names(model)))
        if len(values) > len(_names(model)):
            raise FileError(f"{where}: {len(values)} parameters, but {words[1]} has fewer.")
        _add_camera(where, cameras, number, model, width, height, values)
    return cameras


def _text_images(path: pathlib.Path) -> list[ColmapImage]:
    # An image is a line, and another that lists its points, which may be empty.
    lines, images = _lines(path), []
    for where, line in lines:
        if not line:
            continue
        *words, name = line.split(maxsplit=9)
        pose = _parse(where, float, words[1:8], 7)
        number, camera = _parse(where, int, [*words[:1], *words[8:]], 2)
        image = _make_image(where, number, name, camera, pose)
        listed = next(lines, None)
        if listed is None:
            raise FileError(
                f"{path} is cut: the line after the last image, which lists its points and may be "
                "empty, is not there."
            )
        images.append(_with_seen(image, _text_seen(*listed)))
    return images


def _text_seen(where: str, line: str) -> np.ndarray:
    """Reads the places and ids of the points of an image: x, y and id of each."""
    words = line.split()
    if len(words) % 3:
        raise FileError(f"{where}: {len(words)} numbers, which are no triples x, y, id.")
    places = [_parse(where, float, words[i::3], 0) for i in (0, 1)]
    numbers = [min(max(x, -1), _MOST) for x in _parse(where, int, words[2::3], 0)]
    return np.array(list(zip(*places, numbers, strict=True)), _SEEN)


def _text_points(path: pathlib.Path) -> _Points:
    points = []
    for where, line in _lines(path):
        if line:
            words = line.split()
            (number,) = _parse(where, int, words[:1], 1)
            values = _parse(where, float, words[1:8], 7)
            if not all(0 <= value <= 255 for value in values[3:6]):
                raise FileError(f"{where}: colours lie between 0 and 255.")
            points.append((number, *values[:6]))
    return _make_points(path, points)


_BINARY = _binary_cameras, _binary_images, _binary_points
_TEXT = _text_cameras, _text_images, _text_points


# --- What both have in common


def _names(model: int) -> list[str]:
    return _MODELS[model][1].split()


def _add_camera(
    where: str,
    cameras: dict[int, ColmapCamera],
    number: int,
    model: int,
    width: int,
    height: int,
    values: tuple[float, ...] | list[float],
) -> None:
    if number in cameras:
        raise FileError(f"{where}: there are two cameras with the id {number}.")
    if not (0 < width < _LARGEST and 0 < height < _LARGEST):
        raise FileError(f"{where}: camera {number} has pictures of {width}x{height} pixels.")
    if not (np.abs(values) < _HUGE).all():
        raise FileError(f"{where}: camera {number} has parameters that are not finite.")
    parameters = dict(zip(_names(model), map(float, values), strict=True))
    cameras[number] = ColmapCamera(_MODELS[model][0], width, height, parameters)


def _make_image(where: str, number: int, name: str, camera: int, pose: list[float]) -> ColmapImage:
    values = np.array(pose, dtype=np.float64)
    length = float(np.linalg.norm(np.clip(values[:4], -1e6, 1e6)))
    if not (np.abs(values) < _HUGE).all() or not 1e-6 < length < 1e6:
        raise FileError(f"{where}: image {number} has an impossible pose: {pose}.")
    return ColmapImage(number, name, camera, values[:4] / length, values[4:])


def _with_seen(image: ColmapImage, seen: np.ndarray) -> ColmapImage:
    """Adds what an image shows; places that are not finite show nothing."""
    places = np.stack([seen["x"], seen["y"]], axis=-1)
    finite = np.all(np.abs(places) < _HUGE, axis=1)
    return image._replace(places=places[finite], points=seen["point"][finite])


def _make_points(path: pathlib.Path, points: list) -> _Points:
    # Ids apart, because those of 64 bits are no floating numbers.
    numbers = np.array([min(max(point[0], 0), _MOST) for point in points], np.int64)
    table = np.array([point[1:] for point in points], dtype=np.float64).reshape(-1, 6)
    if not (np.abs(table) < _HUGE).all():
        raise FileError(f"{path} has points that are not finite.")
    return table[:, :3], table[:, 3:].astype(np.uint8), numbers
