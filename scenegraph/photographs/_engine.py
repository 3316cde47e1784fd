"""The program that finds poses by COLMAP, in a process of its own.

It is run by its path, with a task as one line of JSON on its input, and imports nothing of the
library. Lines of JSON on its output say how far it is, and at last what it found. It ends when its
input does, so that it does not outlive the process that has started it.
"""

import collections
import contextlib
import json
import os
import pathlib
import shutil
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np


# Pictures, and pairs of pictures, between two lines about the progress.
_PICTURES, _PAIRS = 16, 400
# Conditions of the first pair of pictures: COLMAP's own, and those of a second try, with fewer
# matches and smaller angles, in degrees.
_FIRST_TRY, _SECOND_TRY = (100, 16.0), (40, 4.0)
# The fewest pictures that make a model; and the fewest matches that place a picture in the end.
_LEAST_MODEL, _FEWEST_INLIERS = 3, 15
# Two pictures are still of each other if this share of what they have in common is at the same
# place in both, within so many pixels; and a camera keeps still if this share of pairs are.
_STILL, _SAME_PLACE = 0.5, 1.5


def _send(**message: Any) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def _progress(stage: str, done: int, total: int) -> None:
    _send(stage=stage, done=done, total=total)


def _find(task: dict[str, Any]) -> dict[str, Any]:
    """Finds features, matches and models; models are written, the largest as `0`."""
    import pycolmap

    # The number of features, matches and threads does not change what is found.
    pycolmap.set_random_seed(0)
    database = task["database"]
    names = [name for group in task["groups"] for name in group["names"]]
    done = 0
    _progress("finding features", done, len(names))
    for group in task["groups"]:
        for count in _find_features(pycolmap, task, group):
            _progress("finding features", done + count, len(names))
        done += len(group["names"])
    _match(pycolmap, task)
    still = _drop_still_matches(pycolmap, task)
    inliers, kinds = _count_matches(pycolmap, database, set(names))
    models = _find_models(pycolmap, task, names)
    return {"inliers": inliers, "kinds": kinds, "models": models, "still": still}


# --- Features and matches


def _find_features(pycolmap: Any, task: dict[str, Any], group: dict[str, Any]) -> Iterator[int]:
    """Finds the features of pictures with one lens that have none yet; yields how many are done."""
    with _database(pycolmap, task["database"]) as database:
        known = {image.name: image for image in database.read_all_images()}
        done = {name for name, one in known.items() if database.exists_keypoints(one.image_id)}
        cameras = [known[name].camera_id for name in group["names"] if name in known]
    missing = [name for name in group["names"] if name not in done]
    options = pycolmap.FeatureExtractionOptions()
    options.num_threads = task["threads"]
    options.sift.max_num_features = task["features"]
    # A second direction of a feature would count as another one.
    options.sift.max_num_orientations = 1
    reader = pycolmap.ImageReaderOptions()
    reader.camera_model = group["model"]
    reader.camera_params = group["parameters"]
    for start in range(0, len(missing), _PICTURES):
        names = missing[start : start + _PICTURES]
        if cameras:
            reader.existing_camera_id = cameras[0]
        pycolmap.extract_features(
            task["database"],
            task["pictures"],
            image_names=names,
            camera_mode=pycolmap.CameraMode.SINGLE,
            reader_options=reader,
            extraction_options=options,
        )
        yield len(group["names"]) - len(missing) + start + len(names)
        if not cameras:
            with _database(pycolmap, task["database"]) as database:
                cameras = [database.read_image_with_name(names[0]).camera_id]


def _match(pycolmap: Any, task: dict[str, Any]) -> None:
    """Matches the features of pairs; those that were matched before are passed over."""
    with _database(pycolmap, task["database"]) as database:
        numbers = {image.name: image.image_id for image in database.read_all_images()}
        numbers = {
            name: one for name, one in numbers.items() if database.num_keypoints_for_image(one)
        }
        pairs = [(a, b) for a, b in task["pairs"] if a in numbers and b in numbers]
        left = [
            (a, b)
            for a, b in pairs
            if not database.exists_two_view_geometry(numbers[a], numbers[b])
        ]
    listed = pathlib.Path(task["work"]) / "pairs.txt"
    options = pycolmap.FeatureMatchingOptions()
    options.num_threads = task["threads"]
    _progress("matching pairs", len(pairs) - len(left), len(pairs))
    for start in range(0, len(left), _PAIRS):
        some = left[start : start + _PAIRS]
        listed.write_text("".join(f"{a} {b}\n" for a, b in some), encoding="utf-8")
        pycolmap.match_image_pairs(
            task["database"],
            matching_options=options,
            pairing_options=pycolmap.ImportedPairingOptions(match_list_path=str(listed)),
            verification_options=_verification(pycolmap),
        )
        _progress("matching pairs", len(pairs) - len(left) + start + len(some), len(pairs))
    listed.unlink(missing_ok=True)


def _verification(pycolmap: Any) -> Any:
    options = pycolmap.TwoViewGeometryOptions()
    options.ransac.random_seed = 0
    return options


def _drop_still_matches(pycolmap: Any, task: dict[str, Any]) -> bool:
    """Drops what keeps its place in pictures, if the camera keeps still; returns whether it does.

    A thing turns before such a camera, and what is behind it says that nothing has moved.
    """
    names = {name for group in task["groups"] for name in group["names"]}
    # A file beside the database says so to a second call, of which most are dropped already.
    note = pathlib.Path(f"{task['database']}.still")
    with _database(pycolmap, task["database"]) as database:
        called = {x.image_id: x.name for x in database.read_all_images() if x.name in names}
        places = {one: np.asarray(database.read_keypoints(one))[:, :2] for one in called}

        def moves(a: int, b: int, matches: np.ndarray) -> np.ndarray:
            offset = places[a][matches[:, 0]] - places[b][matches[:, 1]]
            return np.linalg.norm(offset, axis=1) > _SAME_PLACE

        still, count = [], 0
        for pair, geometry in zip(*database.read_two_view_geometries(), strict=True):
            a, b = pycolmap.pair_id_to_image_pair(pair)
            if {a, b} <= called.keys() and len(geometry.inlier_matches):
                count += 1
                if np.mean(moves(a, b, geometry.inlier_matches)) < 1 - _STILL:
                    still.append((a, b))
        if not still or (len(still) < _STILL * count and not note.exists()):
            return note.exists()
        for a, b in still:
            matches = database.read_matches(a, b)
            matches = matches[moves(a, b, matches)]
            database.delete_matches(a, b)
            database.delete_two_view_geometry(a, b)
            database.write_matches(a, b, matches)
    note.touch()
    _progress("matching what moves", 0, len(still))
    listed = pathlib.Path(task["work"]) / "pairs.txt"
    listed.write_text("".join(f"{called[a]} {called[b]}\n" for a, b in still), encoding="utf-8")
    pycolmap.verify_matches(task["database"], str(listed), _verification(pycolmap))
    listed.unlink()
    return True


def _count_matches(
    pycolmap: Any, path: str, names: set[str]
) -> tuple[dict[str, int], dict[str, int]]:
    """Returns the most verified matches of every picture with another, and the kinds of pairs."""
    most: dict[str, int] = dict.fromkeys(names, 0)
    kinds: collections.Counter[str] = collections.Counter()
    with _database(pycolmap, path) as database:
        called = {image.image_id: image.name for image in database.read_all_images()}
        for pair, geometry in zip(*database.read_two_view_geometries(), strict=True):
            a, b = (called.get(one, "") for one in pycolmap.pair_id_to_image_pair(pair))
            count = len(geometry.inlier_matches)
            if count == 0 or not {a, b} <= names:
                continue
            most[a], most[b] = max(most[a], count), max(most[b], count)
            kinds[pycolmap.TwoViewGeometryConfiguration(geometry.config).name] += 1
    return most, dict(kinds)


@contextlib.contextmanager
def _database(pycolmap: Any, path: str) -> Iterator[Any]:
    database = pycolmap.Database.open(path)
    try:
        yield database
    finally:
        database.close()


# --- Models


def _find_models(pycolmap: Any, task: dict[str, Any], names: list[str]) -> list[dict[str, Any]]:
    """Finds models, the largest first, and writes them; none where no pair can begin one."""
    folder = pathlib.Path(task["models"])
    _progress("placing pictures", 0, len(names))
    shutil.rmtree(folder, ignore_errors=True)
    for conditions in (_FIRST_TRY, _SECOND_TRY):
        folder.mkdir(parents=True, exist_ok=True)
        found = _MAPPERS[task["mapper"]](pycolmap, task, names, folder, conditions)
        if found:
            break
    shutil.rmtree(folder, ignore_errors=True)
    order = sorted(found.values(), key=lambda model: -model.num_reg_images())
    if order:
        order[0] = _add_missing(pycolmap, task, names, order[0])
    models = []
    for number, model in enumerate(order):
        if number == 0:
            _refine_lens(pycolmap, task, model)
        model.update_point_3d_errors()
        place = folder / str(number)
        place.mkdir(parents=True, exist_ok=True)
        model.write_binary(str(place))
        models.append(_describe(pycolmap, model))
    return models


def _incremental(
    pycolmap: Any,
    task: dict[str, Any],
    names: list[str],
    folder: pathlib.Path,
    conditions: tuple[int, float],
) -> dict[int, Any]:
    """Adds picture after picture to a pair."""
    options = _incremental_options(pycolmap, task, names)
    options.mapper.init_min_num_inliers, options.mapper.init_min_tri_angle = conditions
    count = [0]

    def note() -> None:
        count[0] += 1
        _progress("placing pictures", min(count[0], len(names)), len(names))

    return pycolmap.incremental_mapping(
        task["database"],
        task["pictures"],
        str(folder),
        options,
        initial_image_pair_callback=note,
        next_image_callback=note,
    )


def _incremental_options(pycolmap: Any, task: dict[str, Any], names: list[str]) -> Any:
    options = pycolmap.IncrementalPipelineOptions()
    options.image_names, options.num_threads = names, task["threads"]
    options.random_seed, options.min_model_size = 0, _LEAST_MODEL
    return options


def _global(
    pycolmap: Any,
    task: dict[str, Any],
    names: list[str],
    folder: pathlib.Path,
    conditions: tuple[int, float],
) -> dict[int, Any]:
    """Places all pictures at once."""
    options = pycolmap.GlobalPipelineOptions()
    options.image_names, options.num_threads = names, task["threads"]
    options.random_seed = 0
    options.image_path = task["pictures"]
    return pycolmap.global_mapping(task["database"], task["pictures"], str(folder), options)


_MAPPERS: dict[str, Callable[..., dict[int, Any]]] = {
    "incremental": _incremental,
    "global": _global,
}


def _add_missing(pycolmap: Any, task: dict[str, Any], names: list[str], model: Any) -> Any:
    """Tries once more to place the pictures that the largest model lacks, with fewer matches."""
    if model.num_reg_images() == len(names):
        return model
    start, folder = (pathlib.Path(task["work"]) / name for name in ("start", "more"))
    for place in (start, folder):
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir()
    model.write_binary(str(start))
    options = _incremental_options(pycolmap, task, names)
    options.multiple_models = False
    options.mapper.abs_pose_min_num_inliers = _FEWEST_INLIERS
    found = pycolmap.incremental_mapping(
        task["database"], task["pictures"], str(folder), options, input_path=str(start)
    )
    for place in (start, folder):
        shutil.rmtree(place, ignore_errors=True)
    return max([model, *found.values()], key=lambda one: one.num_reg_images())


def _refine_lens(pycolmap: Any, task: dict[str, Any], model: Any) -> None:
    """Gives lenses that many pictures share the coefficients of OpenCV's model."""
    shared = collections.Counter(
        image.camera_id for image in model.images.values() if image.has_pose
    )
    changed = False
    for number, camera in model.cameras.items():
        if camera.model.name != "SIMPLE_RADIAL" or shared[number] < task["opencv_from"]:
            continue
        focal, x, y, k = camera.params
        camera.model = pycolmap.CameraModelId.OPENCV
        camera.params = [focal, focal, x, y, k, 0.0, 0.0, 0.0]
        changed = True
    if changed:
        _progress("refining the lens", 0, 1)
        options = pycolmap.BundleAdjustmentOptions()
        options.print_summary = False
        pycolmap.bundle_adjustment(model, options)


def _describe(pycolmap: Any, model: Any) -> dict[str, Any]:
    """Returns what a report says of a model."""
    angles = []
    centers = {
        number: image.projection_center()
        for number, image in model.images.items()
        if image.has_pose
    }
    for index, point in enumerate(model.points3D.values()):
        if index % 7:
            continue
        seen = {element.image_id for element in point.track.elements}
        rays = np.array([centers[number] - point.xyz for number in seen])
        rays /= np.maximum(np.linalg.norm(rays, axis=1, keepdims=True), 1e-12)
        angles.append(float(np.degrees(np.arccos(np.clip((rays @ rays.T).min(), -1, 1)))))
    return {
        "names": sorted(image.name for image in model.images.values() if image.has_pose),
        "points": len(model.points3D),
        "error": float(model.compute_mean_reprojection_error()),
        "angle": float(np.median(angles)) if angles else 0.0,
    }


# --- The model as other programs read it


def _export(task: dict[str, Any]) -> dict[str, Any]:
    """Writes a model turned, with other names, and with lenses of pictures in their full size."""
    import pycolmap

    model = pycolmap.Reconstruction(task["model"])
    turn = np.eye(3, 4)
    turn[:, :3] = task["rotation"]
    model.transform(pycolmap.Sim3d(turn))
    # The sizes that pictures of a lens have.
    sizes = {}
    for image in model.images.values():
        name, width, height = task["renamed"][image.name]
        camera = model.cameras[image.camera_id]
        scale = sizes.setdefault(
            image.camera_id,
            (np.array([width / camera.width, height / camera.height]), (width, height)),
        )[0]
        for point in image.points2D:
            point.xy = point.xy * scale
        image.name = name
    for number, (_, size) in sizes.items():
        model.cameras[number].rescale(*size)
    model.write_binary(task["out"])
    return {}


def _end_with_input() -> None:
    """Ends the process, in the middle of whatever it does, when its input is closed."""
    while sys.stdin.buffer.read(1024):
        pass
    os._exit(1)


def main() -> None:
    """Does one task."""
    task = json.loads(sys.stdin.buffer.readline())
    threading.Thread(target=_end_with_input, daemon=True).start()
    try:
        _send(result={"find": _find, "export": _export}[task["task"]](task))
    except ImportError as error:
        _send(missing=str(error).splitlines()[0])
    except MemoryError:
        _send(error="out of memory")
    except Exception as error:  # what COLMAP says, for the process that has started this one
        traceback.print_exc()
        _send(error=(str(error) or type(error).__name__).strip().splitlines()[-1])
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
