"""From photographs or a video to a capture: pictures with poses, as other programs read them."""

import math
import os
import pathlib
import shutil
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np

from ..io import (
    FileError,
    LOCK_FILE,
    locked_folder,
    PART,
    read_json,
    require_no_links,
    write_json,
)
from ._capture import is_found_capture, read_capture, write_capture
from ._diagnosis import explain_no_model, explain_unplaced, has_depth
from ._pairs import choose_pairs
from ._pictures import (
    digest_file,
    list_photographs,
    Photograph,
    Photographs,
    Progress,
    write_small_copies,
)
from ._process import require_engine, run_engine
from ._records import FoundPoses
from ._video import extract_frames, is_video, list_frame_sizes


Lens: TypeAlias = Literal["auto", "pinhole", "fisheye"]
# COLMAP's models of lenses, and the parameters of each that follow from a focal length.
_MODELS = {
    "auto": ("SIMPLE_RADIAL", "{f},{x},{y},0"),
    "pinhole": ("SIMPLE_PINHOLE", "{f},{x},{y}"),
    "fisheye": ("OPENCV_FISHEYE", "{f},{f},{x},{y},0,0,0,0"),
}
# The pictures of a lens from which on it has the coefficients of OpenCV's model.
_OPENCV_FROM = 20
# The most features of a picture, and the fewest of this most: matching takes the product of two
# pictures' numbers for every pair, so that there are fewer where there are more pairs than these.
_MOST_FEATURES, _LEAST_FEATURES, _FEW_PAIRS = 4096, 2048, 1225
_LEAST = 3
# What is kept beside the capture for a second call: small pictures, features, matches.
WORK, _SETTINGS, _DATABASE = "work", "settings.json", "features.db"
# CPU seconds: a megapixel's features, placing a picture, the program's start, a pair's matches, and
# comparing a feature of a pair with another; and the usual number of features of a megapixel.
_FEATURES_TIME, _PLACE_TIME, _START_TIME, _PAIR_TIME, _COMPARE_TIME = 1.7, 0.4, 5.0, 0.004, 4.6e-9
_USUAL_FEATURES = 5000


def _ignore(stage: str, done: int, total: int) -> None:
    """Shows no progress."""


def find_poses(
    photos: str | os.PathLike,
    out: str | os.PathLike,
    *,
    size: int = 1000,
    frames: int = 100,
    lens: Lens = "auto",
    up: Sequence[float] | None = None,
    mapper: Literal["incremental", "global"] = "incremental",
    progress: Progress | None = None,
) -> FoundPoses:
    """Finds the poses of photographs, or of the frames of a video, and writes a capture.

    A capture is a folder that `load_data`, `scenegraph fit` and other programs read: the pictures
    that have a pose (upright, in `images`), COLMAP's model (`sparse/0`), `transforms.json`, a
    picture of the cameras (`cameras.png`), and a report (`poses.md`, `poses.json`). Its z axis
    points up. Features and matches are kept in it (`work`), so that a second call goes on from
    them, also where the first one was killed; nothing is written beside the photographs.

    **Arguments:**

    - `photos`: the folder of pictures, of which those in folders below count too; or a video.
    - `out`: the folder of the capture; new, empty, or that of an earlier call.
    - `size`: the longest side, in pixels, of the small pictures in which features are found.
      Keyword only, as is all that follows.
    - `frames`: the number of frames of a video that are used: of as many stretches the sharpest.
    - `lens`: the kind of the lenses: `auto` for radial distortion, and that of OpenCV's model
      where 20 pictures or more share a lens; `pinhole` for none; `fisheye`.
    - `up`: the direction upwards, `3`, in the axes of the capture as it is without this argument.
    - `mapper`: the way in which pictures are placed: one after the other, or all at once.
    - `progress`: a function that is called with what is being done, how much of it is done, and
      how much there is to do.

    **Returns:**

    What was found, with the reason for each picture without a pose.

    **Errors:**

    `FileError` for photographs that are too few, have nothing in common, or show no depth, and for
    folders that cannot be used; `ValueError` for arguments out of range; `MissingExtra` where
    COLMAP is not installed (`pip install scenegraph[photos]`).

    **Source:** Schönberger and Frahm 2016, "Structure-from-Motion Revisited"; Pan et al. 2024,
    "Global Structure-from-Motion Revisited".

    Example:

    ```python
    found = sg.data.find_poses("photos", "capture")
    for line in found.describe():
        print(line)
    views = sg.load_data(found.folder)
    ```
    """
    photos, out, progress = pathlib.Path(photos), pathlib.Path(out), progress or _ignore
    upwards = None if up is None else tuple(float(x) for x in up)
    request = Request(size, frames, lens, mapper, upwards)
    _check_folders(photos, out)
    request.check()
    require_engine()
    # Before anything is made: a folder of which nothing can be done stays alone.
    listed = None if is_video(photos) else list_enough(photos)
    with locked_folder(out, "another process that finds poses"):
        work = require_no_links(out) / WORK
        if listed is None:
            listed = list_enough(_frames_of(photos, work, frames, progress))
        earlier = read_capture(out, request, listed)
        if earlier is not None:
            return earlier
        return _find(listed, out, request, progress, sequence=is_video(photos))


class Request(NamedTuple):
    """The arguments of `find_poses` that decide what it finds."""

    size: int
    frames: int
    lens: Lens
    mapper: str
    up: tuple[float, ...] | None

    def check(self) -> None:
        """Refuses numbers out of their range."""
        for name, value, least in (("size", self.size, 100), ("frames", self.frames, _LEAST)):
            if not least <= value <= 10_000:
                raise ValueError(f"`{name}` must be between {least} and 10,000; got {value}.")
        if self.lens not in _MODELS:
            raise ValueError(f"`lens` must be one of {', '.join(_MODELS)}; got {self.lens!r}.")
        up = np.zeros(3) if self.up is None else np.array(self.up)
        if up.shape != (3,) or not np.isfinite(up).all() or (self.up and not up.any()):
            raise ValueError(f"`up` must be three finite numbers, not all zero; got {self.up}.")


def list_enough(folder: pathlib.Path) -> Photographs:
    """Lists the pictures of a folder; refuses fewer than poses can be found for."""
    listed = list_photographs(folder)
    if len(listed.pictures) < _LEAST:
        count = len(listed.pictures)
        others = "".join(f" ({one.name}: {one.why})" for one in listed.left_out[:3])
        raise FileError(
            f"{folder} holds {count or 'no'} usable picture{'s' * (count != 1)}{others}; poses "
            f"need {_LEAST} that overlap, and a good scene 30 or more."
        )
    return listed


def _check_folders(photos: pathlib.Path, out: pathlib.Path) -> None:
    """Refuses to write beside the photographs, or into a folder of something else."""
    if not photos.exists():
        raise FileError(f"there is no {photos}; pass a folder of photographs, or a video.")
    if photos.is_file() and not is_video(photos):
        raise FileError(f"{photos} is neither a folder nor a video; pass the folder it is in.")
    inputs, target = photos.resolve(), out.resolve()
    inside = target.is_relative_to(inputs) or (photos.is_dir() and inputs.is_relative_to(target))
    if inside:
        raise FileError(
            f"{out} and the photographs in {photos} lie in each other, and nothing is written "
            "beside photographs; choose another folder for the capture (--out)."
        )
    if out.exists() and not _is_own(out):
        raise FileError(
            f"{out} is there, and no capture of an earlier call; choose another folder (--out)."
        )


def is_unfinished(folder: pathlib.Path) -> bool:
    """Returns true for the folder of a call of `find_poses` that has not come to its end."""
    return (folder / WORK / _SETTINGS).is_file() and not is_found_capture(folder)


def _is_own(out: pathlib.Path) -> bool:
    """Returns true for an empty folder, and for what an earlier call has left, also if killed."""
    if not out.is_dir():
        return False
    if (out / WORK / _SETTINGS).is_file():
        return True
    names = set(os.listdir(out)) - {LOCK_FILE}
    # Before there are settings, there may be frames of a video.
    frames = names == {WORK} and (out / WORK).is_dir()
    return not names or (frames and all(x.startswith("frames-") for x in os.listdir(out / WORK)))


def _frames_of(
    video: pathlib.Path, work: pathlib.Path, count: int, progress: Progress
) -> pathlib.Path:
    """Returns the folder of a video's frames, which are extracted where they are not there."""
    folder = work / f"frames-{digest_file(video)}-{count}"
    if not folder.is_dir():
        fresh = folder.with_name(folder.name + PART)
        shutil.rmtree(fresh, ignore_errors=True)
        extract_frames(video, fresh, count, progress)
        fresh.replace(folder)
    return folder


def _find(
    listed: Photographs, out: pathlib.Path, request: Request, progress: Progress, *, sequence: bool
) -> FoundPoses:
    """Finds poses with all that is known from earlier calls, and writes the capture."""
    work = out / WORK
    notes = _prepare_work(work, request, listed)
    small = work / "pictures"
    damaged = write_small_copies(listed.pictures, small, request.size, progress)
    names = {one.name for one in damaged}
    pictures = [one for one in listed.pictures if one.name not in names]
    left_out = [*listed.left_out, *damaged]
    if len(pictures) < _LEAST:
        raise FileError(f"{left_out[0].name}: {left_out[0].why}; too few pictures are left.")
    groups = _share_lenses(pictures, request)
    keys = [one.key for one in pictures]
    pairs = choose_pairs(len(keys), sequence=sequence)
    progress("starting COLMAP", 0, 1)
    found = run_engine(
        {
            "task": "find",
            "work": str(work),
            "database": str(work / _DATABASE),
            "pictures": str(small),
            "models": str(work / "models"),
            "groups": groups,
            "pairs": [(keys[a], keys[b]) for a, b in pairs],
            "mapper": request.mapper,
            "features": _count_features(len(pairs)),
            "threads": -1,
            "opencv_from": _OPENCV_FROM,
        },
        work / "log.txt",
        progress,
    )
    if not has_depth(found):
        raise FileError(explain_no_model(pictures, found, small, work))
    unplaced = [*left_out, *explain_unplaced(pictures, found, small)]
    return write_capture(pictures, unplaced, found, out, request, listed, notes, progress)


def _count_features(pairs: int) -> int:
    """Returns the most features of a picture where so many pairs are matched."""
    fewer = _MOST_FEATURES * (_FEW_PAIRS / max(pairs, _FEW_PAIRS)) ** 0.25
    return max(_LEAST_FEATURES, round(fewer))


def _prepare_work(work: pathlib.Path, request: Request, listed: Photographs) -> tuple[str, ...]:
    """Makes the folder of what is kept; drops what belongs to other settings. Returns notes."""
    digests = {one.name: one.digest for one in listed.pictures}
    settings = {"size": request.size, "lens": request.lens, "pictures": digests}
    before = read_json(work / _SETTINGS) if (work / _SETTINGS).is_file() else {}
    before = before if isinstance(before, dict) else {}
    if any(before.get(name) != settings[name] for name in ("size", "lens")):
        for name in ("pictures", "models"):
            shutil.rmtree(work / name, ignore_errors=True)
        for file in work.glob(f"{_DATABASE}*"):
            file.unlink()
    (work / "pictures").mkdir(parents=True, exist_ok=True)
    write_json(work / _SETTINGS, settings)
    known = before.get("pictures")
    known = known if isinstance(known, dict) else {}
    gone = sorted(name for name, digest in known.items() if digest not in digests.values())
    if not gone:
        return ()
    return (
        f"{len(gone)} photographs of the last call have been moved away or changed, such as "
        f"{gone[0]}: they are left out, or taken as they are now",
    )


def _share_lenses(pictures: Sequence[Photograph], request: Request) -> list[dict[str, Any]]:
    """Groups pictures by lens: those of a size, unless EXIF says that others took them."""
    groups: dict[tuple, list[Photograph]] = {}
    for one in pictures:
        focal = None if one.tags.focal is None else round(one.tags.focal, 2)
        groups.setdefault((one.width, one.height, one.tags.camera, focal), []).append(one)
    model, parameters = _MODELS[request.lens]
    shared = []
    for (width, height, _, focal), members in groups.items():
        scale = min(1.0, request.size / max(width, height))
        width, height = max(1, round(scale * width)), max(1, round(scale * height))
        # EXIF has it in diagonals.
        known = None if focal is None else focal * math.hypot(width, height)
        filled = "" if known is None else parameters.format(f=known, x=width / 2, y=height / 2)
        shared.append({"names": [one.key for one in members], "model": model, "parameters": filled})
    return shared


def estimate_seconds(photos: pathlib.Path, size: int = 1000, frames: int = 100) -> float:
    """Estimates how long `find_poses` takes for a folder or a video, in seconds on these cores."""
    if is_video(photos):
        sizes = list_frame_sizes(photos)[:frames]
    else:
        sizes = [(one.width, one.height) for one in list_photographs(photos).pictures]
    count = len(sizes)
    scales = [min(1.0, size / max(one)) for one in sizes]
    areas = [w * h * s * s / 1e6 for (w, h), s in zip(sizes, scales, strict=True)]
    area = sum(areas) / max(count, 1)
    pairs = len(choose_pairs(count, sequence=is_video(photos)))
    features = min(_count_features(pairs), _USUAL_FEATURES * area)
    work = count * (_FEATURES_TIME * area + _PLACE_TIME)
    work += pairs * (_PAIR_TIME + _COMPARE_TIME * features**2)
    return _START_TIME + work / max(1, os.cpu_count() or 1)
