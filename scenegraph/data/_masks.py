"""Masks: pictures beside pictures that say which pixels count; black ones do not."""

import pathlib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np

from .._typing import Bool, Int
from ..io import FileError, read_picture, turn_upright
from ._listing import is_picture, normalised


# Folders of masks, of which the first that is there is taken.
_FOLDERS = ("masks", "mask")
# The beginning of the names of instant-ngp's masks, which lie beside the pictures.
_DYNAMIC = "dynamic_mask_"
# JAX counts the pixels of one list in 32 bits.
_MOST = 2**31


class Mask(NamedTuple):
    """The file of a mask, in which what is black does not count, or what is not."""

    file: pathlib.Path
    hides: bool = False  # what is not black does not count


def find_masks(
    folder: pathlib.Path, names: Sequence[str], pictures: str = "images"
) -> tuple[list[Mask | None], tuple[str, ...]]:
    """Finds the masks of pictures in a folder `masks` beside theirs; also says what is odd.

    The mask of `images/a.jpg` is `masks/a.jpg.png`, as COLMAP has it, or `masks/a` with any ending.
    Pictures of a folder `images_4` have theirs in `masks_4`, if that is there.
    """
    _, _, smaller = pictures.rpartition("_")
    alike = [f"{name}_{smaller}" for name in _FOLDERS] if smaller.isdecimal() else []
    folders = [folder / name for name in (*alike, *_FOLDERS)]
    place = next((x for x in folders if x.is_dir()), None)
    if place is None:
        return [None] * len(names), ()
    there = [x.relative_to(place) for x in sorted(place.rglob("*")) if is_picture(x)]
    there = [x for x in there if not any(part.startswith(".") for part in x.parts)]
    # Without the last ending: `a.jpg` of `a.jpg.png`.
    stems = {x.with_suffix("").as_posix(): Mask(place / x) for x in there}

    def find(name: str) -> Mask | None:
        whole = pathlib.PurePosixPath(normalised(name))
        # Of `images/a.jpg`: `images/a.jpg`, `images/a`, `a.jpg`, `a`.
        forms = (whole, pathlib.PurePosixPath(*whole.parts[1:]) if whole.parts[1:] else whole)
        keys = (key for form in forms for key in (form.as_posix(), form.with_suffix("").as_posix()))
        return next((stems[key] for key in keys if key in stems), None)

    found = [find(name) for name in names]
    odd = f"{place} has no mask of any picture; that of a.jpg would be a.png or a.jpg.png"
    return found, () if any(found) else (odd,)


def find_dynamic_masks(pictures: Sequence[pathlib.Path]) -> list[Mask | None]:
    """Finds instant-ngp's masks beside pictures, `dynamic_mask_a.png` of `a.jpg`.

    What is not black in them is left out.
    """
    files = [picture.with_name(f"{_DYNAMIC}{picture.stem}.png") for picture in pictures]
    return [Mask(file, hides=True) if _is_file(file) else None for file in files]


def _is_file(file: pathlib.Path) -> bool:
    try:
        return file.is_file()
    except OSError:  # a name that is too long
        return False


def read_masks(
    masks: Sequence[Mask | None],
    upright: Sequence[int],
    sizes: Int[np.ndarray, "frames 2"],
) -> tuple[Bool[np.ndarray, " pixels"], tuple[str, ...]]:
    """Reads the masks of pictures of these sizes; also says how much they leave out.

    `upright` has the EXIF orientations by which the pictures were turned.
    """
    if int(np.sum(np.prod(sizes.astype(np.int64), axis=1))) >= _MOST:
        raise FileError(
            f"{_any_file(masks)}: masks of 2**31 pixels and more are not supported; raise "
            "--downscale, or leave them out with --no-masks (`masks=False`)."
        )

    def read(index: int) -> np.ndarray:
        (width, height), mask = sizes[index].tolist(), masks[index]
        if mask is None:
            return np.ones((height, width), bool)
        return _read_mask(mask, upright[index], width, height)

    with ThreadPoolExecutor() as pool:
        parts = list(pool.map(read, range(len(masks))))
    flat = np.concatenate([part.reshape(-1) for part in parts])
    if not flat.any():
        raise FileError(
            f"the masks, such as {_any_file(masks)}, leave out every pixel: black is left out, "
            "white counts (in a `dynamic_mask_`, black counts). Correct them, or pass --no-masks "
            "(`masks=False`)."
        )
    number = sum(mask is not None for mask in masks)
    share = 100 * (1 - flat.mean())
    note = f"masks of {number} of {len(masks)} pictures leave out {share:.1f} % of all pixels"
    return flat, (note,)


def _any_file(masks: Sequence[Mask | None]) -> pathlib.Path:
    """Returns the file of the first mask, for a message."""
    return next(mask.file for mask in masks if mask)


def _read_mask(mask: Mask, orientation: int, width: int, height: int) -> np.ndarray:
    """Reads a mask; a pixel counts if all pixels of the mask that it stands for do."""
    # A mask in the opacity, or in colours: what is black or transparent does not count.
    read = read_picture(mask.file)
    counts = np.all(read[..., 3:] > 127, axis=-1) & np.any(read[..., :3] > 127, axis=-1)
    if mask.hides:
        counts = np.all(read[..., :3] == 0, axis=-1)
    for turned in (counts, turn_upright(counts, orientation)):
        rows, columns = turned.shape
        factor = max(1, columns // width)
        if (columns // factor, rows // factor) == (width, height):
            # Blocks of whole pixels, as pictures are averaged: a rest is cut off.
            blocks = turned[: height * factor, : width * factor]
            return np.asarray(blocks.reshape(height, factor, width, factor).all(axis=(1, 3)))
        # Smaller pictures of other programs, whose sizes are rounded: all of the mask.
        scale = rows / height
        if scale > 1 and abs(columns - scale * width) <= scale:
            return _all_in_parts(_all_in_parts(turned, height).T, width).T
    raise FileError(
        f"the mask {mask.file} has {counts.shape[1]}x{counts.shape[0]} pixels, and its picture "
        f"{width}x{height}: it must be as large, or larger and of the same shape. Correct it, or "
        "leave masks out with --no-masks (`masks=False`)."
    )


def _all_in_parts(counts: np.ndarray, parts: int) -> np.ndarray:
    """Returns, of so many equal parts of an axis, whether all that a part touches is true."""
    # Part i touches floor(i n / parts) to ceil((i + 1) n / parts).
    size = len(counts)
    first, end = np.arange(parts) * size // parts, -(-np.arange(1, parts + 1) * size // parts)
    false = np.cumsum(np.concatenate([np.zeros((1, *counts.shape[1:]), int), ~counts]), axis=0)
    return false[end] == false[first]
