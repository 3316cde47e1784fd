"""The frames of a JSON listing, one rule for all formats: names, files, poses, lenses and masks."""

import pathlib
from typing import Any, NamedTuple

import numpy as np

from ..io import are_usable, as_matrix, as_pose, FileError
from ._lenses import read_lens
from ._listed import ListedView
from ._listing import find_inside, normalised, portable, read_frame
from ._masks import find_dynamic_masks, find_masks, Mask


# The key of the folder of the pictures, where that is not the listing's own.
PICTURES_FOLDER = "pictures_folder"
_NAMES = "_filenames"
# instant-ngp's, at the top of a listing or of a frame: what is done instead.
_OTHER_KEYS = {
    "black_transparent": "black pixels are opaque",
    "white_transparent": "white pixels are opaque",
    "mask_color": "pixels of that colour count",
    "fix_premult": "colours are taken to be straight",
    "from_mitsuba": "cameras are taken to have OpenGL's axes",
    "normal_mts_args": "cameras are taken to have OpenGL's axes",
    "enable_ray_loading": "rays are those of the lens",
    "sharpen": "pictures are as they are stored",
    "sharpness_discard_threshold": "pictures count however sharp they are",
    "transform_matrix_start": "the camera stands still at `transform_matrix`",
    "transform_matrix_end": "the camera stands still at `transform_matrix`",
    "light_dir": "the light does not move",
    "driver_parameters": "the scene does not change with them",
}


class ListedFrames(NamedTuple):
    """The frames of a listing in its order, those that were left out, and what is odd."""

    views: list[ListedView]
    left_out: tuple[str, ...]  # their names
    notes: tuple[str, ...]


def split_keys(listing: dict[str, Any]) -> list[str]:
    """Returns the keys of a listing that name the pictures of a split."""
    return [key for key in listing if key.endswith(_NAMES)]


def read_listed_frames(
    path: pathlib.Path, listing: dict[str, Any], *, masks: bool, skip: bool
) -> ListedFrames:
    """Reads all frames of a listing; those without a usable pose are an error, or left out."""
    _check_applied_transform(path, listing.get("applied_transform"))
    root, frames = _pictures_root(path, listing), list(enumerate(listing["frames"]))
    odd, notes = _unusable_poses(path, listing["frames"], skip)
    views = [_read_view(path, root, listing, *pair) for pair in frames if pair[0] not in odd]
    left_out = [frame.get("file_path") for index, frame in frames if index in odd]
    names = tuple(name for name in left_out if isinstance(name, str))
    views, odd_masks = _add_masks(root, views) if masks else (_without_masks(views), ())
    return ListedFrames(views, names, (*notes, *_note_other_keys(path, listing, root), *odd_masks))


def _unusable_poses(
    path: pathlib.Path, frames: list[Any], skip: bool
) -> tuple[dict[int, str], tuple[str, ...]]:
    """Returns the reasons of frames whose poses cannot be, by number; says which, too."""
    odd = {}
    for index, frame in enumerate(frames):
        # Frames without a file are refused later.
        if isinstance(frame, dict) and isinstance(frame.get("file_path"), str):
            try:
                as_pose(frame.get("transform_matrix"), f"frame {index}: `transform_matrix`")
            except FileError as error:
                odd[index] = str(error).removesuffix(".")
    if not odd:
        return odd, ()
    listed = "; ".join(odd.values())
    if not skip or len(odd) == len(frames):
        raise FileError(
            f"{path}: {len(odd)} of {len(frames)} frames have no usable pose: {listed}. Correct "
            "them, or leave them out with --skip-missing (`skip_missing=True`)."
        )
    note = f"{len(odd)} of {len(frames)} frames are left out, for want of a usable pose: {listed}"
    return odd, (note,)


def usable_pose(frame: Any) -> np.ndarray | None:
    """Returns the pose of a frame; `None` if it has none that can be."""
    try:
        return as_pose(frame["transform_matrix"], "")
    except (FileError, KeyError, TypeError):
        return None


def without_names(names: Any, others: tuple[str, ...]) -> Any:
    """Returns a list without some names, however they are written; anything else as it is."""
    plain = {normalised(name) for name in others}
    if not isinstance(names, list):
        return names
    return [x for x in names if not isinstance(x, str) or normalised(x) not in plain]


def _without_masks(views: list[ListedView]) -> list[ListedView]:
    return [view._replace(mask=None) for view in views]


def _add_masks(
    root: pathlib.Path, views: list[ListedView]
) -> tuple[list[ListedView], tuple[str, ...]]:
    """Finds the masks beside the pictures, unless the listing names some; says what is odd."""
    dynamic = find_dynamic_masks([view.frame.picture for view in views])
    if any(view.mask for view in views):
        return views, _note_dynamic(dynamic)
    # By the files' names: those of the listing may have no ending.
    folders = [pathlib.PurePosixPath(view.name).parent for view in views]
    files = [view.frame.picture.name for view in views]
    named = [(place / file).as_posix() for place, file in zip(folders, files, strict=True)]
    beside, odd = find_masks(root, named, pathlib.PurePosixPath(named[0]).parts[0])
    if any(beside):
        odd = (*odd, *_note_dynamic(dynamic))
    else:
        beside = dynamic
    return [view._replace(mask=mask) for view, mask in zip(views, beside, strict=True)], odd


def _note_dynamic(masks: list[Mask | None]) -> tuple[str, ...]:
    """Says that instant-ngp's masks are not used, because the pictures have others."""
    found = [mask.file for mask in masks if mask is not None]
    if not found:
        return ()
    return (f"{len(found)} masks such as {found[0]} are ignored: the pictures have others",)


def _pictures_root(path: pathlib.Path, listing: dict[str, Any]) -> pathlib.Path:
    """Returns the folder of which the pictures must not lead out."""
    name = listing.get(PICTURES_FOLDER)
    if name is None:
        return path.parent
    where = f"{path}: `{PICTURES_FOLDER}`"
    if not isinstance(name, str) or not name or "\0" in name:
        raise FileError(f"{where} must be the name of a folder; got {name!r}.")
    root = next((x for x in (path.parent / name, path.parent / portable(name)) if x.is_dir()), None)
    if root is None:
        raise FileError(f"{where}: there is no folder {name}; name the one where they are now.")
    return root


def _check_applied_transform(path: pathlib.Path, value: Any) -> None:
    # The transform is in the poses already: it is checked, and not applied.
    if value is None:
        return
    where = f"{path}: `applied_transform`"
    matrix = as_matrix(value, where)
    if matrix.shape not in ((3, 4), (4, 4)) or not are_usable(matrix):
        raise FileError(f"{where} must be 3x4 and finite; its shape is {matrix.shape}.")


def _read_view(
    path: pathlib.Path, root: pathlib.Path, listing: dict[str, Any], index: int, frame: Any
) -> ListedView:
    read, where = read_frame(path, index, frame, root), f"{path}: frame {index}"
    name, mask = frame.get("mask_path"), None
    if name is not None:
        if not isinstance(name, str) or not name:
            raise FileError(f"{where}: `mask_path` must be the name of a picture; got {name!r}.")
        mask = Mask(find_inside(root, where, f"`mask_path` {name!r}", name))
    return ListedView(read, read_lens(where, listing, frame), mask)


def _note_other_keys(
    path: pathlib.Path, listing: dict[str, Any], root: pathlib.Path
) -> tuple[str, ...]:
    """Says which keys and files of other programs change pictures there, and not here."""
    frames = [frame for frame in listing["frames"] if isinstance(frame, dict)]
    # A switch that is off changes nothing.
    there = {key for part in (listing, *frames) for key, value in part.items() if value}
    notes = [
        f"{path}: `{key}` is ignored: {_OTHER_KEYS[key]}" for key in _OTHER_KEYS if key in there
    ]
    count = listing.get("n_frames")
    if isinstance(count, int) and count < len(frames):
        notes.append(f"{path}: `n_frames` is {count}, and all {len(frames)} frames are read")
    times = {frame["time"] for frame in frames if isinstance(frame.get("time"), int | float)}
    if len(times) > 1:
        notes.append(
            f"{path}: frames have a `time`, from {min(times):g} to {max(times):g}, which is "
            "ignored: the scene is taken to stand still"
        )
    return (*notes, *_note_opacities(path, root, frames))


def _note_opacities(
    path: pathlib.Path, root: pathlib.Path, frames: list[dict[str, Any]]
) -> tuple[str, ...]:
    """Says that pictures of opacities beside the pictures are not read."""
    names = [portable(x["file_path"]) for x in frames if isinstance(x.get("file_path"), str)]
    beside = [root / f"{name}.alpha.png" for name in names if "\0" not in name]
    try:
        found = [file for file in beside if file.is_file()]
    except OSError:  # a name that is too long
        return ()
    if not found:
        return ()
    return (
        f"{path}: {len(found)} pictures of opacities, such as {found[0].name}, are not read; save "
        "them as the pictures' own opacity",
    )
