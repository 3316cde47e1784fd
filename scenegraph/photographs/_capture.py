"""The folder that poses are written to, as this and other programs read it."""

import dataclasses
import os
import pathlib
import shutil
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np

from ..cameras import common_up
from ..io import (
    check_kinds,
    ColmapCamera,
    ColmapImage,
    ColmapModel,
    FileError,
    read_colmap,
    read_json,
    replace_file,
    write_json,
)
from ..models import write_points
from ._camera_picture import draw_cameras
from ._diagnosis import note_model
from ._pictures import copied_names, copy_photograph, Photograph, Photographs, Progress
from ._process import run_engine
from ._records import FoundLens, FoundPoses, UnplacedPicture


RESULT_FILE, _REPORT, _PICTURE = "poses.json", "poses.md", "cameras.png"
_IMAGES, _SPARSE, _LISTING, _POINTS = "images", "sparse", "transforms.json", "sparse_pc.ply"
# The rotation of COLMAP's world, whose y points down, to one whose z points up; and that of its
# cameras, which have y down and look along z, to OpenGL's.
_WORLD = np.array([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.0, -1.0, 0.0]])
_CAMERA = np.diag([1.0, -1.0, -1.0])
# What other programs call COLMAP's models, and the coefficients that they know.
_LISTED = {
    "SIMPLE_PINHOLE": ("PINHOLE", ()),
    "SIMPLE_RADIAL": ("OPENCV", ("k1", "k2", "p1", "p2")),
    "OPENCV": ("OPENCV", ("k1", "k2", "p1", "p2")),
    "OPENCV_FISHEYE": ("OPENCV_FISHEYE", ("k1", "k2", "k3", "k4")),
}
_KINDS = {
    "request": {str: object},
    "pictures": {str: str},
    "placed": [str],
    "unplaced": [{"name": str, "why": str}],
    "lenses": [
        {
            "model": str,
            "width": int,
            "height": int,
            "pictures": int,
            "parameters": {str: float},
            "from_exif": bool,
        }
    ],
    "reprojection_error": float,
    "points": int,
    "angle": float,
    "models": [int],
    "notes": [str],
}


class _Copy(NamedTuple):
    """A picture with a pose, and its name in the capture."""

    picture: Photograph
    name: str


def is_found_capture(folder: pathlib.Path) -> bool:
    """Returns true for a folder that `find_poses` has written to the end."""
    try:
        check_kinds(read_json(folder / RESULT_FILE), _KINDS, RESULT_FILE)
    except FileError:
        return False
    return (folder / _SPARSE / "0" / "images.bin").is_file()


def longest_side(folder: pathlib.Path) -> int | None:
    """Returns the longest side of a found capture's pictures; `None` for other folders."""
    if not is_found_capture(folder):
        return None
    lenses = read_json(folder / RESULT_FILE)["lenses"]
    return max((max(one["width"], one["height"]) for one in lenses), default=None)


def read_capture(out: pathlib.Path, request: Any, listed: Photographs) -> FoundPoses | None:
    """Returns what an earlier call with the same request and pictures has found, if any has."""
    if not is_found_capture(out) or not (out / _LISTING).is_file():
        return None
    record = read_json(out / RESULT_FILE)
    same = record["request"] == _request_record(request)
    if not same or record["pictures"] != _digests(listed):
        return None
    return FoundPoses(
        out,
        tuple(record["placed"]),
        tuple(UnplacedPicture(**one) for one in record["unplaced"]),
        tuple(FoundLens(**one) for one in record["lenses"]),
        record["reprojection_error"],
        record["points"],
        record["angle"],
        tuple(record["models"]),
        tuple(record["notes"]),
    )


def _request_record(request: Any) -> dict[str, Any]:
    up = None if request.up is None else list(request.up)
    return {**request._asdict(), "up": up}


def _digests(listed: Photographs) -> dict[str, str]:
    return {one.name: one.digest for one in listed.pictures}


def write_capture(
    pictures: Sequence[Photograph],
    unplaced: Sequence[UnplacedPicture],
    found: dict[str, Any],
    out: pathlib.Path,
    request: Any,
    listed: Photographs,
    notes: tuple[str, ...],
    progress: Progress,
) -> FoundPoses:
    """Writes the largest model as a capture; the report, by which it is known, comes last."""
    work = out / "work"
    placed = set(found["models"][0]["names"])
    chosen = [one for one in pictures if one.key in placed]
    names = copied_names(chosen)
    copies = [_Copy(one, names[one.name]) for one in chosen]
    (out / RESULT_FILE).unlink(missing_ok=True)
    _copy_pictures(copies, out / _IMAGES, progress)
    rotation = _upright(read_colmap(work / "models" / "0"), request.up)
    _export(copies, rotation, out, work, progress)
    model = read_colmap(out / _SPARSE / "0")
    _write_listing(model, out)
    draw_cameras(out / _PICTURE, _poses(model), model, _WORLD)
    best = found["models"][0]
    result = FoundPoses(
        out,
        tuple(sorted(names.values())),
        tuple(sorted(unplaced, key=lambda one: one.name)),
        _lenses(model, {copy.name: copy.picture for copy in copies}),
        best["error"],
        best["points"],
        best["angle"],
        tuple(len(one["names"]) for one in found["models"]),
        (*notes, *note_model(found)),
    )
    _write_report(result, out, request, listed)
    return result


def _copy_pictures(copies: Sequence[_Copy], folder: pathlib.Path, progress: Progress) -> None:
    """Copies pictures; those of an earlier call that have no pose now are removed."""
    # In a fresh folder, so that what is in `images` was copied to the end.
    fresh = folder.with_name(f"{folder.name}.part")
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir(parents=True)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        write = lambda copy: copy_photograph(copy.picture, fresh / copy.name)
        for index, _ in enumerate(pool.map(write, copies)):
            progress("copying pictures", index + 1, len(copies))
    shutil.rmtree(folder, ignore_errors=True)
    fresh.replace(folder)


def _upright(model: ColmapModel, up: tuple[float, ...] | None) -> np.ndarray:
    """Returns the rotation, `3 3`, of COLMAP's world after which -y is upwards in it."""
    points = model.points @ _WORLD.T
    rotation = _turn_to_z(common_up(_poses(model), points))
    if up is not None:
        rotation = _turn_to_z(np.array(up)) @ rotation
    return _WORLD.T @ rotation @ _WORLD


def _turn_to_z(up: np.ndarray) -> np.ndarray:
    """Returns the smallest rotation that takes a direction to z."""
    x, y, z = up / np.linalg.norm(up)
    if z < -1 + 1e-9:
        return np.diag([1.0, -1.0, -1.0])
    # Rodrigues: R = I + K + K^2 / (1 + c), K the cross product with up x z, and c = up . z.
    cross = np.array([[0.0, 0.0, -x], [0.0, 0.0, -y], [x, y, 0.0]])
    return np.eye(3) + cross + cross @ cross / (1 + z)


def _poses(model: ColmapModel) -> np.ndarray:
    """Returns the poses of a model's images, world from camera, with z up and OpenGL's axes."""
    return np.stack([_pose(image) for image in model.images])


def _pose(image: ColmapImage) -> np.ndarray:
    w, x, y, z = image.rotation
    # The rotation matrix of a unit quaternion: (w^2 - v.v) I + 2 v v^T + 2 w [v]_x.
    vector = np.array([x, y, z])
    cross = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    turn = (w * w - vector @ vector) * np.eye(3) + 2 * np.outer(vector, vector) + 2 * w * cross
    pose = np.eye(4)
    pose[:3, :3] = _WORLD @ turn.T @ _CAMERA
    pose[:3, 3] = -_WORLD @ turn.T @ image.translation
    return pose


def _export(
    copies: Sequence[_Copy],
    rotation: np.ndarray,
    out: pathlib.Path,
    work: pathlib.Path,
    progress: Progress,
) -> None:
    """Writes the model with the names, sizes and axes of the capture."""
    fresh = out / f"{_SPARSE}.part"
    shutil.rmtree(fresh, ignore_errors=True)
    (fresh / "0").mkdir(parents=True)
    sizes = {one.picture.key: (one.name, one.picture.width, one.picture.height) for one in copies}
    task = {
        "task": "export",
        "model": str(work / "models" / "0"),
        "out": str(fresh / "0"),
        "rotation": rotation.tolist(),
        "renamed": sizes,
    }
    run_engine(task, work / "log.txt", progress)
    shutil.rmtree(out / _SPARSE, ignore_errors=True)
    fresh.replace(out / _SPARSE)


def _write_listing(model: ColmapModel, out: pathlib.Path) -> None:
    """Writes nerfstudio's listing beside the model."""
    frames = [
        {
            "file_path": f"{_IMAGES}/{image.name}",
            "transform_matrix": _pose(image).tolist(),
            "colmap_im_id": image.number,
            **_listed_lens(model.cameras[image.camera]),
        }
        for image in model.images
    ]
    turn = np.concatenate([_WORLD, np.zeros((3, 1))], axis=1)
    listing: dict[str, Any] = {"frames": frames, "applied_transform": turn.tolist()}
    if len(model.points):
        write_points(out / _POINTS, model.points @ _WORLD.T, model.colors)
        listing["ply_file_path"] = _POINTS
    write_json(out / _LISTING, listing)


def _listed_lens(camera: ColmapCamera) -> dict[str, Any]:
    model, coefficients = _LISTED[camera.model]
    given = camera.parameters
    numbers = {"fl_x": given.get("f", given.get("fx")), "fl_y": given.get("f", given.get("fy"))}
    numbers |= {"cx": given["cx"], "cy": given["cy"]}
    numbers |= {name: given.get(name, 0.0) for name in coefficients}
    return {"camera_model": model, "w": camera.width, "h": camera.height, **numbers}


def _lenses(model: ColmapModel, pictures: dict[str, Photograph]) -> tuple[FoundLens, ...]:
    """Describes the lenses that pictures have."""
    members: dict[int, list[Photograph]] = {}
    for image in model.images:
        members.setdefault(image.camera, []).append(pictures[image.name])
    return tuple(
        FoundLens(
            model.cameras[number].model,
            model.cameras[number].width,
            model.cameras[number].height,
            len(some),
            model.cameras[number].parameters,
            some[0].tags.focal is not None,
        )
        for number, some in sorted(members.items())
    )


def _write_report(result: FoundPoses, out: pathlib.Path, request: Any, listed: Photographs) -> None:
    """Writes the report as a page of text, and as JSON, by which a capture is known."""
    lines = ["# Poses", "", *(f"- {line}" for line in result.describe()), ""]
    lines += [f"![The cameras from above and from the side]({_PICTURE})", ""]
    text = "\n".join(lines)
    replace_file(out / _REPORT, lambda file: file.write(text.encode()))
    record = dataclasses.asdict(result)
    del record["folder"]
    about = {"request": _request_record(request), "pictures": _digests(listed)}
    write_json(out / RESULT_FILE, about | record)
