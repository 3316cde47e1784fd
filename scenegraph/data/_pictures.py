"""The files of pictures: which can be read, which way up they are, and all their pixels."""

import hashlib
import os
import pathlib
from collections import Counter
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from .._typing import Bool, Int
from ..cameras import AbstractCamera
from ..images import shrink
from ..io import FileError, PictureHeader, read_picture, read_picture_header, turn_upright
from ..pixels import gather_pixels, PixelArray, Solid, Views
from ._loading import Loading
from ._masks import Mask, read_masks


# So many files are named in a message.
_NAMED = 100


class PictureFile(NamedTuple):
    """A picture to be read: its file, its mask's, and the width and height that its camera has."""

    file: pathlib.Path
    mask: Mask | None = None
    expected: tuple[float, float] | None = None

    @property
    def files(self) -> list[pathlib.Path]:
        """The file of the picture, and that of its mask if it has one."""
        return [self.file] if self.mask is None else [self.file, self.mask.file]


class Pictures(NamedTuple):
    """All pixels of those pictures that were read, and what was done about the others."""

    pixels: PixelArray
    sizes: Int[np.ndarray, "frames 2"]  # before they were averaged
    kept: list[int]
    weights: Bool[np.ndarray, " pixels"] | None
    notes: tuple[str, ...]


def gather_pictures(
    wanted: Sequence[PictureFile],
    loading: Loading,
    factor: int,
    *,
    one_size: bool = True,
    listed: Iterable[pathlib.Path] = (),
) -> Pictures:
    """Reads pictures into one flat list, averaged over blocks.

    Files that cannot be read are an error that names them all, and `listed`, the files of other
    splits, with them; or they are left out.
    """
    files = [file for one in wanted for file in one.files]
    everything = list(dict.fromkeys([*files, *listed]))
    broken = _find_broken(everything, read_picture_header)
    if loading.skip_missing or not broken:
        try:
            return _read_whole(wanted, broken, len(everything), loading, factor, one_size)
        except FileError:
            # Only now is it worth while to decode all: something may be damaged behind its header.
            more = _find_broken(everything, read_picture)
            if more.keys() == broken.keys():
                raise
            broken = more
            if loading.skip_missing:
                return _read_whole(wanted, broken, len(everything), loading, factor, one_size)
    broken = _find_broken(everything, read_picture)
    raise FileError(
        f"{_describe_broken(broken, len(everything))} Restore them, or leave them out with "
        "--skip-missing (`skip_missing=True`)."
    )


def _find_broken(files: list[pathlib.Path], read) -> dict[pathlib.Path, FileError]:
    """Returns the files that cannot be read, with the reasons."""

    def try_one(file: pathlib.Path) -> FileError | None:
        try:
            read(file)
        except FileError as error:
            return error
        return None

    with ThreadPoolExecutor() as pool:
        errors = zip(files, pool.map(try_one, files), strict=True)
        return {file: error for file, error in errors if error is not None}


def _describe_broken(broken: dict[pathlib.Path, FileError], total: int) -> str:
    """Counts and names the files that cannot be read."""
    head = f"{len(broken)} of {total} picture files cannot be read"
    if len(broken) == 1:
        return f"{head}: {next(iter(broken.values()))}"
    folder = os.path.commonpath([file.parent for file in broken])
    kinds: dict[str, list[str]] = {"missing": [], "damaged": []}
    for file in broken:
        kind = "damaged" if os.path.lexists(file) else "missing"
        kinds[kind].append(os.path.relpath(file, folder))
    listed = "; ".join(
        f"{len(names)} {kind}: {', '.join(names[:_NAMED])}{', ...' * (len(names) > _NAMED)}"
        for kind, names in kinds.items()
        if names
    )
    return f"{head} in {folder}: {listed}."


def _read_whole(
    wanted: Sequence[PictureFile],
    broken: dict[pathlib.Path, FileError],
    total: int,
    loading: Loading,
    factor: int,
    one_size: bool,
) -> Pictures:
    """Reads all pictures but those that are broken, or whose masks are."""
    kept = [i for i, x in enumerate(wanted) if not any(file in broken for file in x.files)]
    if not kept:
        raise FileError(
            f"{_describe_broken(broken, total)} No picture is left; restore some of them."
        )
    chosen = [wanted[index] for index in kept]
    headers = [read_picture_header(one.file) for one in chosen]
    turned = [_is_turned(*pair) for pair in zip(headers, chosen, strict=True)]
    upright = [h.orientation if turn else 1 for h, turn in zip(headers, turned, strict=True)]
    pixels, sizes = _read_pixels([one.file for one in chosen], upright, loading, factor, one_size)
    masks = [one.mask for one in chosen]
    weights, masked = read_masks(masks, upright, sizes // factor) if any(masks) else (None, ())
    skipped = _note_skipped(broken, len(wanted) - len(kept), len(wanted), total)
    notes = (*skipped, *_note_twice(chosen), *_note_exif(headers, chosen), *masked)
    return Pictures(pixels, sizes, kept, weights, notes)


def _read_pixels(
    files: list[pathlib.Path], upright: list[int], loading: Loading, factor: int, one_size: bool
) -> tuple[PixelArray, np.ndarray]:
    def shrunk(picture: np.ndarray) -> np.ndarray:
        if factor == 1:
            return picture
        if not loading.straight_alpha:
            return shrink(picture, factor)
        # As the published code rounds.
        return shrink(picture.astype(np.float32) / np.float32(255), factor, straight_alpha=True)

    # Part of the name of the file in the cache.
    settings = f"{factor} {loading.straight_alpha}"
    if any(turn > 1 for turn in upright):
        settings += hashlib.sha256(bytes(upright)).hexdigest()
    pixels, shapes = gather_pixels(
        files,
        lambda index: np.ascontiguousarray(
            turn_upright(read_picture(files[index]), upright[index])
        ),
        shrunk,
        settings=settings,
        memory_map=loading.memory_map,
        one_size=one_size,
    )
    return pixels, np.asarray([(width, height) for height, width, _ in shapes])


def _fits(width: float, height: float, expected: tuple[float, float]) -> bool:
    # Sizes of pictures that were made smaller are rounded.
    return np.allclose((width, height), expected, rtol=0.02, atol=1)


def _is_turned(header: PictureHeader, picture: PictureFile) -> bool:
    """Returns true if a picture has its camera's size only once it is turned upright."""
    if header.orientation < 5 or picture.expected is None:
        return False
    stored = _fits(header.width, header.height, picture.expected)
    return not stored and _fits(header.height, header.width, picture.expected)


def _note_exif(headers: list[PictureHeader], chosen: list[PictureFile]) -> list[str]:
    """Says what was done about EXIF orientations."""
    kinds = {"turned": 0, "stored": 0, "unknown": 0}
    for header, picture in zip(headers, chosen, strict=True):
        if header.orientation == 1:
            continue
        known = header.orientation >= 5 and picture.expected and header.width != header.height
        kind = "turned" if _is_turned(header, picture) else "stored" if known else "unknown"
        kinds[kind] += 1
    texts = {
        "turned": "are turned upright, as their EXIF orientation says: their cameras have the "
        "upright pictures' sizes",
        "stored": "have an EXIF orientation that is not applied: their cameras have the sizes of "
        "the pictures as they are stored",
        "unknown": "have an EXIF orientation that is not applied, and no size shows whether it "
        "should be; if the cameras are those of upright pictures, save these upright",
    }
    return [f"{number} pictures {texts[kind]}" for kind, number in kinds.items() if number]


def _note_twice(chosen: list[PictureFile]) -> list[str]:
    """Says which pictures are named more than once."""
    counts = Counter(picture.file for picture in chosen)
    twice = [file for file, count in counts.items() if count > 1]
    if not twice:
        return []
    return [f"{len(twice)} pictures are named more than once, such as {twice[0]}"]


def _note_skipped(
    broken: dict[pathlib.Path, FileError], left_out: int, of: int, total: int
) -> list[str]:
    """Says which pictures are left out, of how many of this split and of all."""
    if not left_out:
        return []
    what = _describe_broken(broken, total).removesuffix(".")
    return [f"{left_out} of {of} pictures are left out: {what}"]


def assemble_views(
    loading: Loading,
    pictures: Pictures,
    cameras: AbstractCamera,
    sizes: Int[np.ndarray, "frames 2"],
    names: Sequence[str],
    lossmult: np.ndarray | None = None,
    points: np.ndarray | None = None,
) -> Views:
    """Puts together what a loader has read; by default every pixel counts alike."""
    widths, heights = jax.device_put(tuple(sizes.astype(jax.dtypes.canonicalize_dtype(int)).T))
    return Views(
        pictures.pixels,
        cameras,
        widths,
        heights,
        (np.ones(len(sizes)) if lossmult is None else lossmult).astype(np.float32),
        Solid() if loading.backdrop is None else loading.backdrop,
        tuple(names),
        weights=None if pictures.weights is None else jnp.asarray(pictures.weights),
        points=None if points is None or not len(points) else jnp.asarray(points, jnp.float32),
        notes=pictures.notes,
    )
