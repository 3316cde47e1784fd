"""Camera paths in files: plain matrices, or nerfstudio's `camera_path.json`."""

import dataclasses
import math
import os
from typing import Any

import jax.numpy as jnp
import numpy as np

from ..io import as_number, as_pose, FileError, read_json
from ..transforms import Pose
from ._base import AbstractCamera
from ._perspective import PerspectiveCamera
from ._poses import cameras_at


_LARGEST = 2**14
_PLAIN_KEYS = ("cameras", "width", "height", "fps")
_CAMERA_KEYS = ("camera_to_world", "fov_x", "focal")


@dataclasses.dataclass(frozen=True)
class CameraPath:
    """Cameras of one kind and size, and frames a second if the file says so."""

    cameras: list[AbstractCamera]
    frames_per_second: float | None


@dataclasses.dataclass(frozen=True)
class _Entry:
    """A camera of the file; the focal length in pixels, `None` if the file does not say."""

    pose: np.ndarray
    focal: float | None


def read_camera_path(
    path: str | os.PathLike,
    camera: AbstractCamera,
    origin: tuple[float, float, float] = (0.0, 0.0, 0.0),
) -> CameraPath:
    """Reads a camera path; `camera` gives what the file does not (size, focal length, near, far).

    The scene's places are counted from `origin`, a place of the file's world.

    Poses are world from camera. The file is a JSON list of 4x4 matrices, or an object that has such
    a list as `cameras`, whose entries may also be objects with `camera_to_world` and `fov_x` or
    `focal`; or it is nerfstudio's `camera_path.json`.
    """
    content = read_json(path)
    content = {"cameras": content} if isinstance(content, list) else content
    if not isinstance(content, dict):
        raise FileError(f"{path} must hold a list of cameras; it holds {_kind(content)}.")
    reader = _read_nerfstudio if "camera_path" in content else _read_plain
    size, entries = reader(str(path), content)
    for entry in entries:
        entry.pose[:3, 3] -= origin
    speed = content.get("fps")
    speed = None if speed is None else as_number(speed, f"{path}: `fps`", 0, 1e4)
    return CameraPath(_make_cameras(str(path), camera, size, entries), speed)


_Size = tuple[int, int] | None


def _read_plain(path: str, content: dict) -> tuple[_Size, list[_Entry]]:
    _refuse_unknown(path, content, _PLAIN_KEYS)
    size = _size(path, content, "width", "height")
    return size, [
        _read_camera(f"{path}: camera {number}", entry, size)
        for number, entry in enumerate(_list(path, content, "cameras"))
    ]


def _read_camera(where: str, entry: Any, size: _Size) -> _Entry:
    if isinstance(entry, list):
        return _Entry(as_pose(entry, where), None)
    if not isinstance(entry, dict):
        raise FileError(f"{where} must be a matrix or an object; it is {_kind(entry)}.")
    _refuse_unknown(where, entry, _CAMERA_KEYS)
    pose = as_pose(entry.get("camera_to_world"), f"{where}: `camera_to_world`")
    if "fov_x" not in entry and "focal" not in entry:
        return _Entry(pose, None)
    if "fov_x" in entry and "focal" in entry:
        raise FileError(f"{where} has both `fov_x` and `focal`; keep one.")
    if size is None:
        raise FileError(f"{where} has a focal length; then the file needs `width` and `height`.")
    if "focal" in entry:
        return _Entry(pose, as_number(entry["focal"], f"{where}: `focal`", 0, math.inf))
    fov = as_number(entry["fov_x"], f"{where}: `fov_x` (in radians)", 0, math.pi)
    # f = (width / 2) / tan(fov_x / 2)
    return _Entry(pose, 0.5 * size[0] / math.tan(0.5 * fov))


def _read_nerfstudio(path: str, content: dict) -> tuple[_Size, list[_Entry]]:
    """Reads what nerfstudio's viewer writes; its `fov` is vertical, in degrees."""
    kind = content.get("camera_type", "perspective")
    if kind != "perspective":
        raise FileError(f"{path}: `camera_type` must be perspective; it is {kind!r}.")
    size = _size(path, content, "render_width", "render_height")
    if size is None:
        raise FileError(f"{path} has no `render_width` and `render_height`.")
    entries = []
    for number, entry in enumerate(_list(path, content, "camera_path")):
        where = f"{path}: camera {number}"
        if not isinstance(entry, dict):
            raise FileError(f"{where} must be an object; it is {_kind(entry)}.")
        pose = as_pose(entry.get("camera_to_world"), f"{where}: `camera_to_world`")
        fov = entry.get("fov")
        if fov is not None:
            fov = as_number(fov, f"{where}: `fov` (in degrees)", 0, 180)
        # f = (height / 2) / tan(fov / 2)
        focal = None if fov is None else 0.5 * size[1] / math.tan(math.radians(0.5 * fov))
        entries.append(_Entry(pose, focal))
    return size, entries


def _list(path: str, content: dict, name: str) -> list:
    entries = content.get(name)
    if not isinstance(entries, list) or not entries:
        raise FileError(f"{path}: `{name}` must be a list of at least one camera.")
    return entries


def _size(path: str, content: dict, width: str, height: str) -> _Size:
    there = [name for name in (width, height) if name in content]
    if not there:
        return None
    if len(there) == 1:
        raise FileError(f"{path} has `{there[0]}` alone; `{width}` and `{height}` go together.")
    sizes = [as_number(content[n], f"{path}: `{n}`", 0, _LARGEST + 1) for n in (width, height)]
    if any(size != round(size) for size in sizes):
        raise FileError(f"{path}: `{width}` and `{height}` must be whole numbers.")
    return int(sizes[0]), int(sizes[1])


def _refuse_unknown(where: str, content: dict, known: tuple[str, ...]) -> None:
    # A misspelt key would be ignored silently.
    if unknown := sorted(set(content) - set(known)):
        raise FileError(f"{where} has {unknown[0]!r}, which is none of {', '.join(known)}.")


def _kind(value: Any) -> str:
    kinds = {dict: "an object", list: "a list", str: "a text", type(None): "null"}
    return kinds.get(type(value), f"{value!r}")


def _make_cameras(
    path: str, camera: AbstractCamera, size: _Size, entries: list[_Entry]
) -> list[AbstractCamera]:
    if size is None:
        return cameras_at(camera, np.stack([entry.pose for entry in entries]))
    # The scene's own angle of view, where the file has none.
    # With the same angle of view, f grows with the width.
    known = _focal_of(path, camera) * size[0] / camera.width
    focals = [known if entry.focal is None else entry.focal for entry in entries]
    return [
        PerspectiveCamera(
            Pose(entry.pose.astype(np.float32)), focal, *size, near=camera.near, far=camera.far
        )
        for entry, focal in zip(entries, focals, strict=True)
    ]


def _focal_of(path: str, camera: Any) -> float:
    """Finds a pinhole's focal length in pixels from the derivative of its rays."""
    # f = |d| / |dd/dx| in the middle of the picture
    ray = camera.ray(jnp.asarray([camera.width / 2, camera.height / 2]))
    step = float(jnp.linalg.norm(ray.d_direction[0]))
    if not step or not np.allclose(ray.origin, camera.pose.offset(), atol=1e-4):
        raise FileError(
            f"{path} sets sizes or focal lengths, which the rays of this scene's "
            f"{type(camera).__name__} do not allow: it is no pinhole. Keep the poses alone."
        )
    return float(jnp.linalg.norm(ray.direction)) / step
