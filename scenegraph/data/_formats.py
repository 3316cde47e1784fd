"""Which format a data folder has: told by the files in it."""

import dataclasses
import os
import pathlib
from collections.abc import Callable
from typing import Any

from ..io import FileError
from ._backdrops import AbstractBackdrop
from ._blender import load_blender
from ._convert_multiscale import MULTISCALE_LISTING
from ._llff import LLFF_LISTING, LLFF_SPLITS, load_llff
from ._multiscale import load_multiscale, multiscale_splits
from ._transforms import load_transforms, TRANSFORMS_LISTING, transforms_splits
from ._views import Views


@dataclasses.dataclass(frozen=True)
class Format:
    """A data format."""

    name: str
    marker: str
    load: Callable[..., Views]
    splits: Callable[[pathlib.Path], tuple[str, ...]]
    options: frozenset[str] = frozenset()


def _blender_splits(folder: pathlib.Path) -> tuple[str, ...]:
    stems = sorted(path.stem for path in folder.glob("transforms_*.json"))
    return tuple(stem.removeprefix("transforms_") for stem in stems)


# The first that fits is taken.
FORMATS = (
    Format(
        "multiscale",
        MULTISCALE_LISTING,
        load_multiscale,
        lambda folder: multiscale_splits(folder / MULTISCALE_LISTING),
    ),
    Format(
        "LLFF",
        LLFF_LISTING,
        load_llff,
        lambda folder: LLFF_SPLITS,
        frozenset({"hold_every", "ndc", "spherify", "published_radii"}),
    ),
    Format("Blender", "transforms_*.json", load_blender, _blender_splits),
    Format(
        "nerfstudio",
        TRANSFORMS_LISTING,
        load_transforms,
        transforms_splits,
        frozenset({"hold_every"}),
    ),
)


def find_format(folder: str | os.PathLike) -> Format:
    """The format of a data folder."""
    folder = pathlib.Path(folder)
    if not folder.is_dir():
        raise FileError(f"there is no folder {folder}; pass a data folder.")
    for one in FORMATS:
        if any(folder.glob(one.marker)):
            return one
    looked = ", ".join(f"{one.marker} ({one.name})" for one in FORMATS)
    raise FileError(f"{folder} is no data folder: it has none of {looked}.")


def find_splits(folder: str | os.PathLike) -> tuple[str, ...]:
    """The splits that a data folder has.

    **Arguments:**

    - `folder`: the data folder, of any format.

    **Returns:**

    Their names.

    **Errors:**

    `FileError` for a folder of no known format.
    """
    return find_format(folder).splits(pathlib.Path(folder))


def load_data(
    folder: str | os.PathLike,
    split: str = "train",
    *,
    downscale: int = 1,
    near: float | None = None,
    far: float | None = None,
    backdrop: AbstractBackdrop | None = None,
    straight_alpha: bool = False,
    memory_map: bool | None = None,
    **options: Any,
) -> Views:
    """Loads one split of a data folder, whatever its format.

    **Arguments:**

    - `folder`: in Blender's, the multiscale, LLFF's or nerfstudio's format.
    - `split`: `train`, `test`, or another that the folder has.
    - `downscale`, `near`, `far`, `backdrop`, `straight_alpha`, `memory_map`: as in the loaders.
      Keyword only, as is all that follows.
    - `options`: what only the loader of the folder's format knows.

    **Returns:**

    The pictures with their cameras.

    **Errors:**

    `FileError` for a folder of no known format, or one that is malformed; `ValueError` for options
    that the folder's format does not have.
    """
    form = find_format(folder)
    unknown = sorted(set(options) - form.options)
    if unknown:
        raise ValueError(f"{folder} is {form.name} data, for which there is no {unknown[0]!r}.")
    return form.load(
        folder,
        split,
        downscale=downscale,
        near=near,
        far=far,
        backdrop=backdrop,
        straight_alpha=straight_alpha,
        memory_map=memory_map,
        **options,
    )
