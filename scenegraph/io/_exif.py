"""Headers of picture files: sizes, and the EXIF tag that says how a camera was held."""

import os
import struct
import warnings
from typing import NamedTuple

import numpy as np
from PIL import Image as PillowImage

from ._errors import FileError
from ._read import open_picture, require_regular


_ORIENTATION = 0x0112
# The tags of the camera's maker and model, of the part that holds the lens, and of what is there:
# the focal length in millimetres, as if the picture were 36 x 24 mm.
_MAKER, _MODEL, _LENS_PART, _FOCAL_LENGTH = 0x010F, 0x0110, 0x8769, 0xA405
# The diagonal of 36 x 24 mm.
_FILM = 43.2666


class PictureHeader(NamedTuple):
    """A picture's size as it is stored, and its EXIF orientation, from 1 (upright) to 8."""

    width: int
    height: int
    orientation: int


class LensTags(NamedTuple):
    """The name of a camera, and its focal length in diagonals of the picture, from EXIF."""

    camera: str
    focal: float | None


def read_lens_tags(path: str | os.PathLike) -> LensTags:
    """Reads the name and the focal length of the camera that took a picture, where they stand."""
    require_regular(path)
    try:
        with open(path, "rb") as file, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with open_picture(file) as picture:
                data = picture.info.get("exif")
        exif = PillowImage.Exif()
        exif.load(data if isinstance(data, bytes) else b"")
        camera = " ".join(str(exif.get(tag, "")).strip() for tag in (_MAKER, _MODEL)).strip()
        focal = exif.get_ifd(_LENS_PART).get(_FOCAL_LENGTH)
        length = float(focal) if isinstance(focal, int | float) else 0.0
        # Some cameras write 0 for what they do not know.
        return LensTags(camera[:80], length / _FILM if 3 < length < 1500 else None)
    except (OSError, ValueError, SyntaxError, KeyError, TypeError, EOFError, struct.error):
        return LensTags("", None)


def read_picture_header(path: str | os.PathLike) -> PictureHeader:
    """Reads the header of a picture file; the pixels may be damaged all the same."""
    require_regular(path)
    try:
        with open(path, "rb") as file, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # `read_picture` says what it does not like.
            with open_picture(file) as picture:
                return PictureHeader(*picture.size, _orientation(picture))
    except FileNotFoundError as error:
        raise FileError(f"there is no picture {path}.") from error
    except (OSError, ValueError, SyntaxError, EOFError, struct.error) as error:
        raise FileError(f"cannot read the picture {path}: it is damaged ({error}).") from error
    except PillowImage.DecompressionBombError as error:
        raise FileError(f"{path} claims to be too large to be a picture: {error}") from error


def _orientation(picture: PillowImage.Image) -> int:
    # Only what stands before the pixels: Pillow would decode a PNG to look behind them. It turns
    # TIFF files itself.
    data = picture.info.get("exif")
    if not isinstance(data, bytes) or picture.format == "TIFF":
        return 1
    exif = PillowImage.Exif()
    try:
        exif.load(data)
        value = exif.get(_ORIENTATION, 1)
    except (OSError, ValueError, SyntaxError, KeyError, TypeError, struct.error):
        return 1
    return value if isinstance(value, int) and 1 <= value <= 8 else 1


def turn_upright(picture: np.ndarray, orientation: int) -> np.ndarray:
    """Turns pixels `height width ...` upright, as an EXIF orientation says."""
    # 2 and 4 mirror, 3 is half a turn; 5 to 8 exchange rows and columns first.
    turned = picture.swapaxes(0, 1) if orientation >= 5 else picture
    if orientation in (3, 4, 7, 8):
        turned = turned[::-1]
    return turned[:, ::-1] if orientation in (2, 3, 6, 7) else turned
