"""Photographs without a listing: which there are, what took them, and small copies of them."""

import hashlib
import os
import pathlib
import shutil
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple, TypeAlias

import numpy as np

from ..io import (
    atomic_write,
    FileError,
    LensTags,
    MissingExtra,
    read_lens_tags,
    read_picture,
    read_picture_header,
    read_small_picture,
    require_regular,
    turn_upright,
    write_photograph,
)
from ._records import UnplacedPicture


# Called with what is being done, how much of it is done, and how much there is to do.
Progress: TypeAlias = Callable[[str, int, int], object]

# The endings of what cameras and phones write, and of pictures that were made of it.
_ENDINGS = (".jpg", ".jpeg", ".jfif", ".mpo", ".png", ".heic", ".heif", ".avif", ".webp", ".jp2")
_ENDINGS += (".tif", ".tiff", ".bmp", ".tga", ".ppm")
# What stands behind pictures with opacity while features are looked for.
_GREY = 128.0
# The brightness of red, green and blue (ITU-R BT.601).
_BRIGHTNESS = np.array([0.299, 0.587, 0.114], np.float32)
# Files that other programs read as they are: upright, of eight bits.
_PLAIN = (".jpg", ".jpeg", ".png")
# A picture whose pixels differ by less than this, in levels of 255, shows nothing.
_EMPTY = 3.0


class Photograph(NamedTuple):
    """A picture without a pose."""

    file: pathlib.Path
    name: str  # the name in the folder of pictures, with slashes
    digest: str  # the SHA-256 of the file's bytes, shortened
    width: int  # of the picture when it is upright
    height: int
    orientation: int  # EXIF's, from 1 (upright) to 8
    tags: LensTags

    @property
    def key(self) -> str:
        """The name of the small copy: the same for the same bytes, whatever the file is called."""
        return f"{self.digest}.png"


def is_photograph(file: pathlib.Path) -> bool:
    """Returns true for names of pictures; not for those that begin with a dot, as macOS's do."""
    return file.suffix.lower() in _ENDINGS and not file.name.startswith(".")


class Photographs(NamedTuple):
    """The pictures of a folder that can be read, and the others."""

    pictures: list[Photograph]
    left_out: list[UnplacedPicture]


def list_photographs(folder: pathlib.Path) -> Photographs:
    """Lists the pictures of a folder and of those in it, in the order of their names.

    Of pictures with the same bytes, the first counts; those that cannot be read are left out.
    """
    files = sorted(_walk(folder), key=lambda file: file.relative_to(folder).as_posix())
    if not files:
        raise FileError(f"{folder} holds no pictures; pass a folder of photographs, or a video.")
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        read = list(pool.map(lambda file: _describe(file, folder), files))
    pictures, left_out, first = [], [], {}
    for one in read:
        if isinstance(one, UnplacedPicture):
            left_out.append(one)
        elif one.digest in first:
            left_out.append(UnplacedPicture(one.name, f"the same picture as {first[one.digest]}"))
        else:
            first[one.digest] = one.name
            pictures.append(one)
    return Photographs(pictures, left_out)


def _walk(folder: pathlib.Path) -> list[pathlib.Path]:
    """Lists the pictures in a folder and below; not in hidden or linked folders, nor masks."""
    found: list[pathlib.Path] = []
    for parent, folders, names in os.walk(folder):
        folders[:] = sorted(
            name for name in folders if not name.startswith(".") and name != "masks"
        )
        found += [file for name in names if is_photograph(file := pathlib.Path(parent, name))]
    return found


def has_photographs(folder: pathlib.Path) -> bool:
    """Returns true for a folder with pictures in it or below."""
    return folder.is_dir() and bool(_walk(folder))


def _describe(file: pathlib.Path, folder: pathlib.Path) -> Photograph | UnplacedPicture:
    name = file.relative_to(folder).as_posix()
    try:
        header = read_picture_header(file)
        turned = header.orientation >= 5
        width, height = header.width, header.height
        width, height = (height, width) if turned else (width, height)
        digest = digest_file(file)
        return Photograph(
            file, name, digest, width, height, header.orientation, read_lens_tags(file)
        )
    except MissingExtra:
        raise
    except FileError:
        return UnplacedPicture(name, "the file cannot be read: it is damaged, or no picture")


def digest_file(file: pathlib.Path) -> str:
    """Returns the SHA-256 of a file's bytes, shortened."""
    require_regular(file)
    try:
        with file.open("rb") as data:
            return hashlib.file_digest(data, "sha256").hexdigest()[:24]
    except OSError as error:
        raise FileError(f"cannot read {file}: {error.strerror}.") from error


def write_small_copies(
    pictures: Sequence[Photograph], folder: pathlib.Path, longest: int, progress: Progress
) -> list[UnplacedPicture]:
    """Writes small upright copies, in which features are found; returns what cannot be decoded."""
    left_out: list[UnplacedPicture] = []
    missing = [one for one in pictures if not (folder / one.key).is_file()]
    # Decoding takes most of the time, in code that other threads run beside.
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for index, why in enumerate(
            pool.map(lambda one: _write_small(one, folder, longest), missing)
        ):
            left_out += [] if why is None else [UnplacedPicture(missing[index].name, why)]
            progress("reading pictures", index + 1, len(missing))
    return left_out


def _write_small(picture: Photograph, folder: pathlib.Path, longest: int) -> str | None:
    try:
        pixels = read_small_picture(picture.file, longest)
    except FileError as error:
        if not picture.file.exists():
            raise FileError(f"{error} It was there a moment ago; call again.") from error
        return "the file cannot be read: it is damaged"
    pixels = turn_upright(pixels, picture.orientation).astype(np.float32)
    if pixels.shape[-1] == 4:
        alpha = pixels[..., 3:] / 255
        pixels = alpha * pixels[..., :3] + (1 - alpha) * _GREY
    write_photograph(folder / picture.key, np.round(pixels).astype(np.uint8))
    return None


def copy_photograph(picture: Photograph, target: pathlib.Path) -> None:
    """Copies a picture as other programs read it: upright, and PNG or JPEG."""
    if digest_file(picture.file) != picture.digest:
        raise FileError(
            f"{picture.file} has changed while poses were found; call again, which goes on."
        )
    target.parent.mkdir(parents=True, exist_ok=True)
    if picture.orientation == 1 and picture.file.suffix.lower() in _PLAIN:
        with atomic_write(target) as beside:
            shutil.copyfile(picture.file, beside)
        return
    pixels = turn_upright(read_picture(picture.file), picture.orientation)
    opaque = target.suffix.lower() != ".png"
    write_photograph(target, pixels[..., :3] if opaque else pixels)


def copied_names(pictures: Sequence[Photograph]) -> dict[str, str]:
    """Returns the names of the copies, by those of the pictures: `a.heic` becomes `a.jpg`."""
    names, taken = {}, {one.name for one in pictures}
    for one in pictures:
        path = pathlib.PurePosixPath(one.name)
        if path.suffix.lower() in _PLAIN:
            names[one.name] = one.name
            continue
        ending = ".jpg" if path.suffix.lower() in (".heic", ".heif", ".mpo", ".jfif") else ".png"
        name = path.with_suffix(ending).as_posix()
        name = f"{one.name}{ending}" if name in taken else name
        taken.add(name)
        names[one.name] = name
    return names


class Sharpness(NamedTuple):
    """The sharpness of a small picture, and the spread of its pixels."""

    laplacian: float  # the variance of the Laplacian, in squared levels of 255
    spread: float  # the standard deviation, in levels of 255

    @property
    def is_empty(self) -> bool:
        """True for a picture that shows nothing, such as a black one."""
        return self.spread < _EMPTY


def measure_sharpness(pixels: np.ndarray) -> Sharpness:
    """Measures a picture, `height width` or `height width 3`, of 255 levels."""
    grey = pixels.astype(np.float32)
    grey = grey @ _BRIGHTNESS if grey.ndim == 3 else grey
    # Laplacian: the four neighbours minus four times the pixel.
    inner = grey[:-2, 1:-1] + grey[2:, 1:-1] + grey[1:-1, :-2] + grey[1:-1, 2:]
    laplacian = inner - 4 * grey[1:-1, 1:-1]
    return Sharpness(float(laplacian.var()) if laplacian.size else 0.0, float(grey.std()))
