"""COLMAP's reconstructions, read as they are: a sparse model, and folders of pictures."""

import os
import pathlib
from collections.abc import Sequence
from typing import NamedTuple, Unpack

import numpy as np

from ..io import as_pose, ColmapCamera, ColmapImage, ColmapModel, FileError, read_colmap
from ..pixels import Views
from ._convert_colmap import COLMAP_TURN, convert_lens, convert_pose
from ._lenses import Lens, read_lens
from ._listed import ListedView, load_listed, SeenPoints, Shrinking
from ._listing import find_inside, Frame, PICTURES, portable
from ._loading import Loading, LoadOptions
from ._masks import find_masks
from ._splits import choose_frames
from ._transforms import LISTED_SPLITS


# Where a sparse model may be in a data folder.
_PLACES = ("sparse/0", "sparse", "colmap/sparse/0", "colmap/sparse", "0", ".")
COLMAP_LISTINGS = tuple(
    f"{place}/{name}.{end}".removeprefix("./")
    for place in _PLACES
    for name in ("cameras", "images")
    for end in ("bin", "txt")
)
# Where its pictures may be, in this order.
_FOLDERS = ("images", "images_2", "images_4", "images_8", "input", ".")


class _Folder(NamedTuple):
    """A folder of pictures, how much smaller they are than the cameras say, and its capture."""

    place: pathlib.Path
    smaller: int
    root: pathlib.Path


def load_colmap(
    folder: str | os.PathLike,
    split: str = "train",
    *,
    hold_every: int = 8,
    held_out: Sequence[str | int] = (),
    **options: Unpack[LoadOptions],
) -> Views:
    """Loads one split of a COLMAP reconstruction, binary or text.

    Cameras and world are those that `scenegraph convert colmap` writes: COLMAP's downward axis (+y)
    becomes -z. Pictures are looked for in `images`; with the option `downscale`, in `images_2` and
    so on first, which are then not averaged; and in the folder itself.

    **Arguments:**

    - `folder`: the folder of `sparse/0` and `images`; or the folder of the model's files.
    - `split`: `val` and `test` are both every eighth picture in the order of names, beginning with
      the first; `train` is the others.
    - `hold_every`: another number than eight. Keyword only argument.
    - `held_out`: the pictures of `val` and `test` instead, by names or by numbers in the order of
      names. Keyword only argument.
    - `options`: the keywords of `LoadOptions`.

    **Returns:**

    The pictures with their cameras, of the classes that `load_transforms` chooses, the model's
    points, and the pixels that show these. Masks are read from a folder `masks`.

    **Errors:**

    `FileError` for anything missing, cut, malformed or not supported; the message names the file
    and the entry. `ValueError` for `hold_every` below two.
    """
    folder = pathlib.Path(folder)
    loading, model_folder = Loading(**options), find_model(folder)
    if model_folder is None:
        raise FileError(f"{folder} has no COLMAP model: no cameras.bin or cameras.txt.")
    if split not in LISTED_SPLITS:
        raise FileError(f"{folder} has no split {split!r}; there are {', '.join(LISTED_SPLITS)}.")
    model = read_colmap(model_folder)
    kind = ".bin" if (model_folder / "cameras.bin").is_file() else ".txt"
    where, images = model_folder / f"images{kind}", sorted(model.images, key=lambda x: x.name)
    pictures = _find_pictures(folder, model_folder, where, images, loading.downscale)
    lenses = _read_lenses(model, model_folder / f"cameras{kind}")
    every = [_read_view(where, image, lenses[image.camera], pictures.place) for image in images]
    turned = model.points @ COLMAP_TURN[:, :3].T
    seen = _seen_points(images, model.numbers, turned)
    every = [view._replace(seen=one) for view, one in zip(every, seen, strict=True)]
    odd = _note_folder(model_folder, pictures, loading.downscale)
    if loading.masks:
        every, odd_masks = _add_masks(every, pictures)
        odd = (*odd, *odd_masks)
    names = [view.name for view in every]
    chosen = [every[i] for i in choose_frames(where, names, split, hold_every, held_out)]
    factor = loading.downscale if pictures.smaller != loading.downscale else 1
    shrinking = Shrinking(factor, pictures.smaller, resized=True)
    return load_listed(every, chosen, loading, shrinking, turned, odd)


def _seen_points(
    images: list[ColmapImage], numbers: np.ndarray, points: np.ndarray
) -> list[SeenPoints]:
    """Returns what each image shows of points in the world, which are listed by their numbers."""
    order = np.argsort(numbers)
    listed, seen = numbers[order], []
    for image in images:
        place = np.minimum(np.searchsorted(listed, image.points), max(len(listed) - 1, 0))
        # Ids that no point has, such as -1, are those of places that show none.
        known = listed[place] == image.points if len(listed) else np.zeros(len(place), bool)
        seen.append(SeenPoints(image.places[known], points[order[place[known]]]))
    return seen


def _add_masks(
    views: list[ListedView], pictures: _Folder
) -> tuple[list[ListedView], tuple[str, ...]]:
    """Finds the masks beside the pictures; also says what is odd about them."""
    place = pictures.place.name
    named = [f"{place}/{view.name}" for view in views]
    masks, odd = find_masks(pictures.root, named, place)
    return [view._replace(mask=mask) for view, mask in zip(views, masks, strict=True)], odd


def _read_lenses(model: ColmapModel, path: pathlib.Path) -> dict[int, Lens]:
    """Reads the lenses of those cameras that pictures have."""
    used = {image.camera for image in model.images}
    return {
        number: _read_lens(f"{path}: camera {number}", number, camera)
        for number, camera in model.cameras.items()
        if number in used
    }


def find_model(folder: pathlib.Path) -> pathlib.Path | None:
    """Returns the folder of a data folder's sparse model; `None` if there is none."""
    for place in _PLACES:
        if any((folder / place / f"cameras.{end}").is_file() for end in ("bin", "txt")):
            return folder / place
    return None


def _roots(folder: pathlib.Path, model: pathlib.Path) -> list[pathlib.Path]:
    """Returns the folders beside whose `sparse/0` pictures may lie.

    A folder that holds a model below it is one itself, and nothing above it counts; above the
    files of a model are the folders that COLMAP makes, such as `sparse` and the `0` in it.
    """
    given, below = folder.resolve(), model.resolve()
    roots, at = [given], given
    if below == given and at.name.isdecimal() and (at.name == "0" or at.parent.name == "sparse"):
        at = at.parent
    elif below not in (given, given / "0"):
        return roots
    if at.name == "sparse":
        at = at.parent
        return [*roots, at, at.parent] if at.name == "colmap" else [*roots, at]
    return roots if at == given else [*roots, at]


def _find_pictures(
    folder: pathlib.Path,
    model: pathlib.Path,
    where: pathlib.Path,
    images: list[ColmapImage],
    downscale: int,
) -> _Folder:
    """Finds the folder in which any of the pictures is."""
    if not images:
        raise FileError(f"{where} holds no image; reconstruct again, with pictures that overlap.")
    order = [f"images_{downscale}", *_FOLDERS] if downscale > 1 else _FOLDERS
    roots = _roots(folder, model)
    places = [(root, root / name) for root in roots for name in order]
    for root, place in places:
        if place.is_dir() and any(_is_there(place, image.name) for image in images):
            _, _, smaller = place.name.rpartition("_")
            named = place.name.startswith("images_") and smaller.isdecimal()
            return _Folder(place, int(smaller) if named and int(smaller) else 1, root)
    looked = ", ".join(str(place) for _, place in places if place.is_dir())
    raise FileError(
        f"{where}: none of its {len(images)} pictures, such as {images[0].name!r}, is in {looked}; "
        f"put them into {roots[-1] / 'images'}."
    )


def _is_there(place: pathlib.Path, name: str) -> bool:
    try:
        return _picture(place, name).is_file()
    except (OSError, ValueError):
        return False


def _picture(place: pathlib.Path, name: str) -> pathlib.Path:
    """Returns a picture's file, or one of the same name with another ending."""
    file = place / name
    file = file if file.is_file() else place / portable(name)
    if file.is_file() or file.suffix.lower() not in PICTURES:
        return file
    # Smaller copies are often PNGs.
    endings = [*PICTURES, *(ending.upper() for ending in PICTURES)]
    others = (file.with_suffix(ending) for ending in endings)
    return next((other for other in others if other.is_file()), file)


def _read_lens(where: str, number: int, camera: ColmapCamera) -> Lens:
    try:
        return read_lens(where, convert_lens(number, camera), {})
    except FileError as error:
        raise FileError(str(error) if where in str(error) else f"{where}: {error}") from error


def _read_view(
    where: pathlib.Path, image: ColmapImage, lens: Lens, place: pathlib.Path
) -> ListedView:
    entry, what = f"{where}: image {image.number}", f"the name {image.name!r}"
    try:
        name = _picture(place, image.name).relative_to(place).as_posix()
    except (OSError, ValueError) as error:
        raise FileError(f"{entry}: {what} is that of no file ({error}).") from error
    file = find_inside(place, entry, what, name)
    pose = as_pose(convert_pose(image, COLMAP_TURN), f"{entry}: its pose")
    return ListedView(Frame(image.name, file, pose), lens)


def _note_folder(model: pathlib.Path, pictures: _Folder, downscale: int) -> tuple[str, ...]:
    """Says which of several folders are read."""
    place, smaller, _ = pictures
    notes = []
    if smaller > 1 or place.name != "images":
        notes.append(f"the pictures are those in {place}")
    siblings = sorted(model.parent.glob("[0-9]*")) if model.parent.name == "sparse" else []
    others = [x.name for x in siblings if x.name != model.name and find_model(x) == x]
    if model.name == "0" and others:
        notes.append(
            f"the model is {model}, of {1 + len(others)} of one reconstruction; for another, pass "
            f"its folder, such as {model.with_name(others[0])}"
        )
    if smaller > 1 and downscale not in (1, smaller):
        notes.append(
            f"--downscale {downscale} makes these, which are smaller already, still smaller"
        )
    return tuple(notes)
