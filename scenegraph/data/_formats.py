"""The formats of data folders, recognised by the files in them."""

import dataclasses
import os
import pathlib
from collections.abc import Callable, Iterator
from typing import Any

from ..io import FileError, read_array, read_json
from ..photographs import (
    has_photographs,
    is_found_capture,
    is_unfinished,
    is_video,
    RESULT_FILE,
)
from ..pixels import Views
from ._blender import load_blender
from ._colmap import COLMAP_LISTINGS, find_model, load_colmap
from ._convert_multiscale import MULTISCALE_LISTING
from ._listing import has_pictures, is_listing
from ._llff import LLFF_LISTING, LLFF_SPLITS, load_llff, looks_forward
from ._loading import LoadOptions
from ._multiscale import load_multiscale, multiscale_splits
from ._transforms import LISTED_SPLITS, load_transforms, TRANSFORMS_LISTING, transforms_splits


@dataclasses.dataclass(frozen=True)
class Format:
    """A data format, known by a file that matches one of `markers` and is what it seems."""

    name: str
    markers: tuple[str, ...]
    load: Callable[..., Views]
    splits: Callable[[pathlib.Path], tuple[str, ...]]
    # Returns false for a folder whose files of these names are those of another program.
    is_there: Callable[[pathlib.Path], bool]
    # Keywords of the loader that the others do not have.
    options: frozenset[str] = frozenset()

    def files(self, folder: pathlib.Path) -> Iterator[pathlib.Path]:
        """Yields the files in a folder that show the format."""
        return (file for marker in self.markers for file in folder.glob(marker))


def _is_blender(folder: pathlib.Path) -> bool:
    # Listings of other names, such as `transforms_backup.json`, are of nobody knows what.
    return any(is_listing(folder / f"transforms_{split}.json") for split in LISTED_SPLITS)


def _blender_splits(folder: pathlib.Path) -> tuple[str, ...]:
    """Lists the splits of which any picture is there, or all if none is."""
    named = sorted(folder.glob("transforms_*.json"))
    listings = [file for file in named if is_listing(file)] or named
    rendered = [file for file in listings if has_pictures(file)]
    return tuple(file.stem.removeprefix("transforms_") for file in rendered or listings)


def _is_llff(folder: pathlib.Path) -> bool:
    try:
        return read_array(folder / LLFF_LISTING).shape[1:] == (17,)
    except FileError:
        return False


def _is_multiscale(folder: pathlib.Path) -> bool:
    try:
        listing = read_json(folder / MULTISCALE_LISTING)
    except FileError:
        return False
    columns = listing.values() if isinstance(listing, dict) else ()
    return any(isinstance(one, dict) and "file_path" in one for one in columns)


def _load_poses_bounds(
    folder: str | os.PathLike, split: str = "train", *, ndc: bool | None = None, **options: Any
) -> Views:
    """Loads the cameras of `poses_bounds.npy`, or those of a COLMAP model of a scene all around."""
    folder = pathlib.Path(folder)
    model = colmap_instead(folder, ndc, options.get("spherify", False))
    if model is None:
        return load_llff(folder, split, ndc=ndc, **options)
    only = options.keys() - _LLFF_ONLY
    views = load_colmap(folder, split, **{name: options[name] for name in only})
    note = (
        f"{folder / LLFF_LISTING}: its cameras do not all look forward: no NDC, and the COLMAP "
        f"model in {model} is read instead (--ndc decides otherwise)"
    )
    return dataclasses.replace(views, notes=(note, *views.notes))


def colmap_instead(folder: pathlib.Path, ndc: bool | None, spherify: bool) -> pathlib.Path | None:
    """Returns the COLMAP model that is read instead of LLFF's `poses_bounds.npy`, if there is one.

    It is where cameras look in many directions, unless LLFF's own ways are asked for.
    """
    if ndc or spherify or looks_forward(folder):
        return None
    return find_model(folder)


_LLFF_ONLY = frozenset({"ndc", "spherify", "published_radii"})
# The first format that is there is taken.
FORMATS = (
    Format(
        "multiscale",
        (MULTISCALE_LISTING,),
        load_multiscale,
        lambda folder: multiscale_splits(folder / MULTISCALE_LISTING),
        _is_multiscale,
    ),
    Format(
        "LLFF",
        (LLFF_LISTING,),
        _load_poses_bounds,
        lambda folder: LLFF_SPLITS,
        _is_llff,
        frozenset({"hold_every", "held_out"}) | _LLFF_ONLY,
    ),
    Format(
        "Blender",
        ("transforms_*.json",),
        load_blender,
        _blender_splits,
        _is_blender,
    ),
    # Before nerfstudio's listing beside it: the model says in which pictures points were seen.
    Format(
        "COLMAP",
        (RESULT_FILE,),
        load_colmap,
        lambda folder: LISTED_SPLITS,
        is_found_capture,
        frozenset({"hold_every", "held_out"}),
    ),
    Format(
        "nerfstudio",
        (TRANSFORMS_LISTING,),
        load_transforms,
        transforms_splits,
        lambda folder: is_listing(folder / TRANSFORMS_LISTING),
        frozenset({"hold_every", "held_out"}),
    ),
    Format(
        "COLMAP",
        COLMAP_LISTINGS,
        load_colmap,
        lambda folder: LISTED_SPLITS,
        lambda folder: True,
        frozenset({"hold_every", "held_out"}),
    ),
)
_NERFSTUDIO = next(one for one in FORMATS if one.name == "nerfstudio")


def find_folder(path: str | os.PathLike) -> pathlib.Path:
    """Returns a data folder, also where the file that shows its format is given instead.

    A listing in nerfstudio's format that the folder would not be read by stays as it is.
    """
    path = pathlib.Path(path)
    if not path.is_file():
        return path
    form = _present_format(path.parent)
    if form is not None and path in form.files(path.parent):
        return path.parent
    if path.suffix == ".json" and is_listing(path):
        return path
    which = "" if form is None else f", which would be read by its {form.markers[0]}"
    raise FileError(f"{path} is a file; pass the data folder that it is in{which}.")


def find_format(folder: str | os.PathLike) -> Format:
    """Finds the format of a data folder, or of a listing."""
    folder = pathlib.Path(folder)
    if folder.is_file() and is_listing(folder):
        return _NERFSTUDIO
    if not folder.is_dir():
        raise FileError(f"there is no folder {folder}; pass a data folder.")
    found = _present_format(folder)
    if found is not None:
        return found
    markers = ", ".join(f"{one.markers[0]} ({one.name})" for one in FORMATS)
    raise FileError(f"{folder} is no data folder: it has none of {markers}.")


def _present_format(folder: pathlib.Path) -> Format | None:
    """Returns the first format whose listing is one; if none is, the first whose file is there."""
    named = [one for one in FORMATS if any(one.files(folder))]
    return next((one for one in named if one.is_there(folder)), next(iter(named), None))


def needs_poses(path: str | os.PathLike) -> bool:
    """Returns true for a video, and for a folder of pictures without any listing of poses."""
    path = pathlib.Path(path)
    if path.is_file():
        return is_video(path)
    if not path.is_dir() or _present_format(path) is not None:
        return False
    if is_unfinished(path):
        raise FileError(
            f"{path} is a capture whose poses were not found to the end; call `scenegraph poses` "
            "again with its photographs, which goes on."
        )
    return has_photographs(path)


def find_splits(folder: str | os.PathLike) -> tuple[str, ...]:
    """Lists the splits of a data folder of any format."""
    folder = find_folder(folder)
    return find_format(folder).splits(folder)


def load_data(folder: str | os.PathLike, split: str = "train", **options: Any) -> Views:
    """Loads one split of a data folder, whatever its format.

    **Arguments:**

    - `folder`: the data folder, in Blender's, the multiscale, LLFF's, nerfstudio's or COLMAP's
      format, or the file in it that shows the format.
    - `split`: `train`, `test`, or another that the folder has.
    - `options`: the keywords of `LoadOptions`, and those of the loader of the folder's format.

    **Returns:**

    The pictures with their cameras.

    **Errors:**

    `FileError` for a folder of no known format, or one that is malformed; `ValueError` for options
    that the folder's format does not have.
    """
    folder = find_folder(folder)
    found = find_format(folder)
    unknown = sorted(options.keys() - found.options - LoadOptions.__annotations__.keys())
    if unknown:
        raise ValueError(f"{folder} is {found.name} data, for which there is no {unknown[0]!r}.")
    return found.load(folder, split, **options)
