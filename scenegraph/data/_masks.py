"""Masks: pictures beside pictures that say which pixels count; black ones do not."""

import pathlib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from .._typing import Bool, Int
from ..io import FileError, read_picture, turn_upright
from ._listing import PICTURES


# Folders of masks, of which the first that is there is taken.
_FOLDERS = ("masks", "mask")
# JAX counts the pixels of one list in 32 bits.
_MOST = 2**31


def find_masks(
    folder: pathlib.Path, names: Sequence[str]
) -> tuple[list[pathlib.Path | None], tuple[str, ...]]:
    """Finds the masks of pictures in a folder `masks` beside theirs; also says what is odd.

    The mask of `images/a.jpg` is `masks/a.jpg.png`, as COLMAP has it, or `masks/a` with any ending.
    """
    place = next((folder / name for name in _FOLDERS if (folder / name).is_dir()), None)
    if place is None:
        return [None] * len(names), ()
    there = [x for x in sorted(place.rglob("*")) if x.suffix.lower() in PICTURES]
    # Without the last ending: `a.jpg` of `a.jpg.png`.
    stems = {x.relative_to(place).with_suffix("").as_posix(): x for x in there}

    def find(name: str) -> pathlib.Path | None:
        whole = pathlib.PurePosixPath(name)
        # Of `images/a.jpg`: `images/a.jpg`, `images/a`, `a.jpg`, `a`.
        forms = (whole, pathlib.PurePosixPath(*whole.parts[1:]) if whole.parts[1:] else whole)
        keys = (key for form in forms for key in (form.as_posix(), form.with_suffix("").as_posix()))
        return next((stems[key] for key in keys if key in stems), None)

    found = [find(name) for name in names]
    odd = f"{place} has no mask of any picture; that of a.jpg would be a.png or a.jpg.png"
    return found, () if any(found) else (odd,)


def read_masks(
    masks: Sequence[pathlib.Path | None],
    upright: Sequence[int],
    sizes: Int[np.ndarray, "frames 2"],
) -> tuple[Bool[np.ndarray, " pixels"], tuple[str, ...]]:
    """Reads the masks of pictures of these sizes; also says how much they leave out.

    `upright` has the EXIF orientations by which the pictures were turned.
    """
    if int(np.sum(np.prod(sizes.astype(np.int64), axis=1))) >= _MOST:
        raise FileError(
            f"{next(x for x in masks if x)}: masks of 2**31 pixels and more are not supported; "
            "raise --downscale, or leave them out with --no-masks (`masks=False`)."
        )

    def read(index: int) -> np.ndarray:
        (width, height), file = sizes[index].tolist(), masks[index]
        if file is None:
            return np.ones((height, width), bool)
        return _read_mask(file, upright[index], width, height)

    with ThreadPoolExecutor() as pool:
        parts = list(pool.map(read, range(len(masks))))
    flat = np.concatenate([part.reshape(-1) for part in parts])
    if not flat.any():
        raise FileError(
            f"the masks, such as {next(x for x in masks if x)}, leave out every pixel: black is "
            "left out, white counts. Correct them, or pass --no-masks (`masks=False`)."
        )
    number = sum(file is not None for file in masks)
    share = 100 * (1 - flat.mean())
    note = f"masks of {number} of {len(masks)} pictures leave out {share:.1f} % of all pixels"
    return flat, (note,)


def _read_mask(file: pathlib.Path, orientation: int, width: int, height: int) -> np.ndarray:
    """Reads a mask; a pixel counts if all pixels of the mask that it stands for do."""
    # A mask in the opacity, or in colours: what is black or transparent does not count.
    mask = read_picture(file)
    counts = np.all(mask[..., 3:] > 127, axis=-1) & np.any(mask[..., :3] > 127, axis=-1)
    for turned in (counts, turn_upright(counts, orientation)):
        factor = max(1, turned.shape[1] // width)
        if (turned.shape[0] // factor, turned.shape[1] // factor) == (height, width):
            blocks = turned[: height * factor, : width * factor]
            return np.asarray(blocks.reshape(height, factor, width, factor).all(axis=(1, 3)))
    raise FileError(
        f"the mask {file} has {counts.shape[1]}x{counts.shape[0]} pixels, and its picture "
        f"{width}x{height}: it must be as large, or a whole multiple. Correct it, or leave masks "
        "out with --no-masks (`masks=False`)."
    )
