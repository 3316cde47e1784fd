"""Keys of a listing that change pictures in other programs, and are not applied here: said."""

import pathlib
from typing import Any

from ._listing import portable


# instant-ngp's, at the top of a listing or of a frame: what is done instead.
_KEYS = {
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


def note_other_keys(
    path: pathlib.Path, listing: dict[str, Any], root: pathlib.Path
) -> tuple[str, ...]:
    """Says which keys and files of other programs change pictures there, and not here."""
    frames = [frame for frame in listing["frames"] if isinstance(frame, dict)]
    # A switch that is off changes nothing.
    there = {key for part in (listing, *frames) for key, value in part.items() if value}
    notes = [f"{path}: `{key}` is ignored: {_KEYS[key]}" for key in _KEYS if key in there]
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
