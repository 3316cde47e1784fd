import importlib
import io
import os
import pathlib
import struct
import warnings
from collections.abc import Sequence
from typing import Any, BinaryIO

import imageio.v3 as iio
import numpy as np
from PIL import Image as PillowImage, UnidentifiedImageError

from ._atomic import atomic_write
from ._errors import FileError
from ._read import open_picture, require_regular


# More frames a second than these, GIFs do not show at their speed.
_FASTEST = 50


def read_picture(path: str | os.PathLike) -> np.ndarray:
    """Reads a picture file as 8-bit colours, straight RGB or RGBA, whatever its mode.

    Palettes, greys, CMYK, YCbCr and LAB become RGB, or RGBA where the file says what is
    transparent. Of 16 bits, grey is rounded, and of colours the upper 8 are taken. Refused are
    animations, and 32-bit pixels, whose range is not in the file.
    """
    require_regular(path)
    try:
        # An open file: Pillow would open some names in its own ways.
        with open(path, "rb") as file:
            return _decode(file, path)
    except FileNotFoundError as error:
        raise FileError(f"there is no picture {path}.") from error
    except OSError as error:
        raise FileError(f"cannot read the picture {path}: it is damaged ({error}).") from error


def read_small_picture(path: str | os.PathLike, longest: int) -> np.ndarray:
    """Reads a picture as `read_picture` does, averaged so that no side has more pixels than that.

    JPEG files are decoded at a part of their size, in a fraction of the time and memory.
    """
    require_regular(path)
    try:
        with open(path, "rb") as file:
            return _decode(file, path, longest=longest)
    except FileNotFoundError as error:
        raise FileError(f"there is no picture {path}.") from error
    except OSError as error:
        raise FileError(f"cannot read the picture {path}: it is damaged ({error}).") from error


def decode_picture(data: bytes, name: str, most: int) -> np.ndarray:
    """Decodes the bytes of a picture file of at most so many pixels, as `read_picture` does."""
    return _decode(io.BytesIO(data), name, most)


def _decode(
    file: BinaryIO, name: str | os.PathLike, most: int | None = None, longest: int | None = None
) -> np.ndarray:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", PillowImage.DecompressionBombWarning)
            with open_picture(file) as picture:
                _check_kind(picture, name)
                if most is not None and picture.width * picture.height > most:
                    raise FileError(f"{name} claims to be of {picture.size} pixels: too many.")
                return _as_color(picture) if longest is None else _small_color(picture, longest)
    except (PillowImage.DecompressionBombWarning, PillowImage.DecompressionBombError) as error:
        raise FileError(f"{name} claims to be too large to be a picture: {error}") from error
    except UnidentifiedImageError as error:
        raise FileError(f"cannot read {name}: it is no picture, or damaged.") from error
    except (OSError, ValueError, SyntaxError, EOFError, struct.error) as error:
        if isinstance(error, FileError):
            raise
        raise FileError(f"cannot read the picture {name}: it is damaged ({error}).") from error


def _check_kind(picture: PillowImage.Image, path: str | os.PathLike) -> None:
    """Refuses what has no single meaning as 8-bit colours."""
    if picture.format in ("GIF", "PNG", "WEBP") and getattr(picture, "n_frames", 1) > 1:
        raise FileError(f"{path} is an animation; save one frame of it as a picture.")
    if picture.mode in ("I", "F"):
        raise FileError(
            f"{path} has 32-bit pixels, whose range is not known; save it with 8 or 16 bits."
        )
    # Pillow compares 16 bits with the upper 8, and finds nothing, or too much.
    if ";16" in _packing(picture) and isinstance(picture.info.get("transparency"), tuple):
        raise FileError(
            f"{path} has 16-bit colours of which one is transparent; save it with 8 bits, or with "
            "an alpha channel."
        )


def _is_deep_grey(picture: PillowImage.Image) -> bool:
    return picture.mode.startswith("I;16")


def _packing(picture: PillowImage.Image) -> str:
    """Returns the file's arrangement of samples, such as `RGB;16B`; empty if there is none."""
    tiles = getattr(picture, "tile", None) or []
    return str(tiles[0][3]) if tiles else ""


def _as_color(picture: PillowImage.Image) -> np.ndarray:
    if _is_deep_grey(picture):
        return _deep_grey_color(np.asarray(picture), picture.info.get("transparency"))
    level = picture.info.get("transparency")
    # A PNG's transparent grey of 2 or 4 bits, which Pillow scales to 8 elsewhere only.
    scale = {"L;2": 85, "L;4": 17}.get(_packing(picture), 1)
    if isinstance(level, int) and scale != 1:
        picture.info["transparency"] = scale * level
    if picture.mode == "La":  # From here, Pillow has only the way over straight grey.
        picture = picture.convert("LA")
    mode = "RGBA" if picture.has_transparency_data else "RGB"
    return np.asarray(picture if picture.mode == mode else picture.convert(mode))


def _small_color(picture: PillowImage.Image, longest: int) -> np.ndarray:
    """Decodes a picture, and averages it so that its longest side has at most so many pixels."""
    share = longest / max(picture.size)
    if share >= 1:
        return _as_color(picture)
    width, height = (max(1, round(share * side)) for side in picture.size)
    picture.draft(None, (width, height))
    small = PillowImage.fromarray(_as_color(picture))
    return np.asarray(small.resize((width, height), PillowImage.Resampling.BOX))


def _deep_grey_color(grey: np.ndarray, transparent: Any) -> np.ndarray:
    """Rounds 16 bits to 8, which are 257 apart."""
    levels = np.round(grey / np.float64(257)).astype(np.uint8)
    color = np.repeat(levels[..., None], 3, axis=-1)
    if not isinstance(transparent, int):
        return color
    alpha = np.where(grey == transparent, np.uint8(0), np.uint8(255))
    return np.concatenate([color, alpha[..., None]], axis=-1)


def write_picture(path: str | os.PathLike, picture: np.ndarray) -> None:
    """Writes an 8-bit picture; the ending of the name gives the format.

    **Arguments:**

    - `path`: path of the file; its folder exists.
    - `picture`: the pixels, uint8, `height width channels`, row 0 at the top.
    """
    with atomic_write(path) as beside:
        iio.imwrite(beside, picture, plugin="pillow")


def write_photograph(path: str | os.PathLike, picture: np.ndarray) -> None:
    """Writes an 8-bit picture as JPEG with little loss, or as PNG with little compression."""
    jpeg = pathlib.Path(path).suffix.lower() in (".jpg", ".jpeg")
    options: dict[str, Any] = {"quality": 95, "subsampling": 0}
    options = options if jpeg else {"compress_level": 1}
    with atomic_write(path) as beside:
        iio.imwrite(beside, picture, plugin="pillow", **options)


def encode_png(picture: np.ndarray) -> bytes:
    """Encodes an 8-bit picture as the bytes of a PNG file."""
    return iio.imwrite("<bytes>", picture, extension=".png", plugin="pillow")


def write_animation(
    path: str | os.PathLike, frames: Sequence[np.ndarray], *, frames_per_second: float = 20.0
) -> None:
    """Writes a GIF (or, with the extra `video`, an MP4) that repeats for ever.

    **Arguments:**

    - `path`: path of the file, ending in `.gif` or `.mp4`.
    - `frames`: the pictures, uint8, `height width 3`, of one size. In an MP4, the last column and
      row are repeated where their number is odd.
    - `frames_per_second`: the speed. Keyword only argument. A GIF counts hundredths of a second,
      so that some frames last longer than others.

    **Errors:**

    `FileError` for an MP4 without the extra `video`. A GIF of more than 50 frames a second is a
    warning: many programs show those slowly.
    """
    with atomic_write(path) as beside:
        if beside.suffix == ".gif":
            durations = _gif_durations(len(frames), frames_per_second)
            iio.imwrite(beside, np.stack(frames), duration=durations, loop=0)
        else:
            _write_video(beside, np.stack(frames), frames_per_second)


def _gif_durations(count: int, speed: float) -> list[int]:
    """Returns how long the frames of a GIF are shown, in milliseconds: whole hundredths."""
    if speed > _FASTEST:
        warnings.warn(
            f"a GIF of {speed:g} frames a second has frames of less than 20 ms, which many "
            f"programs show for 100 ms; pass at most {_FASTEST} a second, or write an .mp4.",
            stacklevel=3,
        )
    # Frame i ends at round(100 (i + 1) / speed): errors do not add up.
    ends = np.round(100 * np.arange(count + 1) / speed).astype(int)
    return (10 * np.diff(ends)).tolist()


def require_video() -> None:
    """Refuses to begin work on MP4 files that could not be written in the end."""
    try:
        importlib.import_module("imageio_ffmpeg")
    except ImportError as error:
        raise FileError("films other than GIF need `pip install scenegraph[video]`.") from error


def _write_video(path: pathlib.Path, frames: np.ndarray, speed: float) -> None:
    require_video()
    even = np.pad(frames, [(0, 0), *((0, size % 2) for size in frames.shape[1:3]), (0, 0)], "edge")
    try:
        with warnings.catch_warnings():
            # JAX warns of forks; this one becomes ffmpeg at once.
            warnings.filterwarnings("ignore", "os.fork", RuntimeWarning)
            # Blocks of two: players want even sizes, and imageio would stretch to multiples of 16.
            iio.imwrite(path, even, plugin="FFMPEG", fps=speed, macro_block_size=2, codec="libx264")
    except (OSError, ValueError) as error:
        raise FileError(f"cannot write {path}: {error}") from error
