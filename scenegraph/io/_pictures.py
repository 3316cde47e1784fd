import importlib
import os
import pathlib
import warnings
from collections.abc import Sequence

import imageio.v3 as iio
import numpy as np
from PIL import Image as PillowImage

from ._atomic import atomic_write
from ._errors import FileError


def read_picture(path: str | os.PathLike) -> np.ndarray:
    """Reads an 8-bit picture file.

    **Arguments:**

    - `path`: path of a PNG, JPEG or other file that Pillow reads.

    **Returns:**

    A uint8 array `height width channels` with 3 (RGB) or 4 (RGBA) channels.

    **Errors:**

    `FileError` for a file that is missing, damaged, absurdly large, or not 8 bits deep.
    """
    try:
        # An open file and one plugin: imageio takes some names for addresses or archives, and
        # tries all sorts of readers on what is not a picture.
        with open(path, "rb") as file, warnings.catch_warnings():
            warnings.simplefilter("error", PillowImage.DecompressionBombWarning)
            PillowImage.open(file)  # reads no more than the size
            file.seek(0)
            picture = np.asarray(iio.imread(file, plugin="pillow"))
    except FileNotFoundError as error:
        raise FileError(f"there is no picture {path}.") from error
    except (PillowImage.DecompressionBombWarning, PillowImage.DecompressionBombError) as error:
        raise FileError(f"{path} claims to be too large to be a picture: {error}") from error
    except (OSError, ValueError, SyntaxError) as error:
        raise FileError(f"cannot read the picture {path}: it is damaged ({error}).") from error
    return _as_color(picture, path)


def _as_color(picture: np.ndarray, path: str | os.PathLike) -> np.ndarray:
    if picture.dtype != np.uint8:
        raise FileError(f"{path} has {picture.dtype} pixels; only 8-bit pictures are supported.")
    if picture.ndim == 2:
        picture = np.repeat(picture[..., None], 3, axis=-1)
    if picture.ndim == 3 and picture.shape[-1] == 2:
        picture = np.concatenate([np.repeat(picture[..., :1], 3, axis=-1), picture[..., 1:]], -1)
    if picture.ndim != 3 or picture.shape[-1] not in (3, 4):
        raise FileError(f"{path} is not an RGB or RGBA picture: its shape is {picture.shape}.")
    return picture


def write_picture(path: str | os.PathLike, picture: np.ndarray) -> None:
    """Writes an 8-bit picture; the ending of the name gives the format.

    **Arguments:**

    - `path`: path of the file; its folder exists.
    - `picture`: the pixels, uint8, `height width channels`, row 0 at the top.
    """
    with atomic_write(path) as beside:
        iio.imwrite(beside, picture)


def write_animation(
    path: str | os.PathLike, frames: Sequence[np.ndarray], *, frames_per_second: float = 20.0
) -> None:
    """Writes a GIF (or, with the extra `video`, an MP4) that repeats for ever.

    **Arguments:**

    - `path`: path of the file, ending in `.gif` or `.mp4`.
    - `frames`: the pictures, uint8, `height width 3`, of one size. In an MP4, the last column and
      row are repeated where their number is odd.
    - `frames_per_second`: the speed. Keyword only argument.

    **Errors:**

    `FileError` for an MP4 without the extra `video`.
    """
    with atomic_write(path) as beside:
        if beside.suffix == ".gif":
            duration = 1000 / frames_per_second
            iio.imwrite(beside, np.stack(frames), duration=duration, loop=0)
        else:
            _write_video(beside, np.stack(frames), frames_per_second)


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
