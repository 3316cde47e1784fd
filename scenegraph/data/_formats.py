"""The formats of data folders, recognised by the files in them."""

import dataclasses
import os
import pathlib
from collections.abc import Callable, Iterator
from typing import Any

from ..io import FileError
from ..pixels import Views
from ._blender import load_blender
from ._colmap import COLMAP_LISTINGS, load_colmap
from ._convert_multiscale import MULTISCALE_LISTING
from ._llff import LLFF_LISTING, LLFF_SPLITS, load_llff
from ._loading import LoadOptions
from ._multiscale import load_multiscale, multiscale_splits
from ._transforms import LISTED_SPLITS, load_transforms, TRANSFORMS_LISTING, transforms_splits


@dataclasses.dataclass(frozen=True)
class Format:
    """A data format, known by a file that matches one of `markers`."""

    name: str
    markers: tuple[str, ...]
    load: Callable[..., Views]
    splits: Callable[[pathlib.Path], tuple[str, ...]]
    # Keywords of the loader that the others do not have.
    options: frozenset[str] = frozenset()

    def files(self, folder: pathlib.Path) -> Iterator[pathlib.Path]:
        """Yields the files in a folder that show the format."""
        return (file for marker in self.markers for file in folder.glob(marker))


def _blender_splits(folder: pathlib.Path) -> tuple[str, ...]:
    stems = sorted(path.stem for path in folder.glob("transforms_*.json"))
    return tuple(stem.removeprefix("transforms_") for stem in stems)


# The first format whose marker is there is taken.
FORMATS = (
    Format(
        "multiscale",
        (MULTISCALE_LISTING,),
        load_multiscale,
        lambda folder: multiscale_splits(folder / MULTISCALE_LISTING),
    ),
    Format(
        "LLFF",
        (LLFF_LISTING,),
        load_llff,
        lambda folder: LLFF_SPLITS,
        frozenset({"hold_every", "held_out", "ndc", "spherify", "published_radii"}),
    ),
    Format("Blender", ("transforms_*.json",), load_blender, _blender_splits),
    Format(
        "nerfstudio",
        (TRANSFORMS_LISTING,),
        load_transforms,
        transforms_splits,
        frozenset({"hold_every", "held_out"}),
    ),
    Format(
        "COLMAP",
        COLMAP_LISTINGS,
        load_colmap,
        lambda folder: LISTED_SPLITS,
        frozenset({"hold_every", "held_out"}),
    ),
)


def find_folder(path: str | os.PathLike) -> pathlib.Path:
    """Returns a data folder, also where the file that shows its format is given instead."""
    path = pathlib.Path(path)
    if not path.is_file():
        return path
    form = _present_format(path.parent)
    if form is None or path not in form.files(path.parent):
        which = "" if form is None else f", which would be read by its {form.markers[0]}"
        raise FileError(f"{path} is a file; pass the data folder that it is in{which}.")
    return path.parent


def find_format(folder: str | os.PathLike) -> Format:
    """Finds the first format whose file is in a data folder."""
    folder = pathlib.Path(folder)
    if not folder.is_dir():
        raise FileError(f"there is no folder {folder}; pass a data folder.")
    found = _present_format(folder)
    if found is not None:
        return found
    markers = ", ".join(f"{one.markers[0]} ({one.name})" for one in FORMATS)
    raise FileError(f"{folder} is no data folder: it has none of {markers}.")


def _present_format(folder: pathlib.Path) -> Format | None:
    return next((one for one in FORMATS if any(one.files(folder))), None)


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
