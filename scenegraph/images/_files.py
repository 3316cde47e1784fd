"""Picture files by the endings of their names: numbers of sRGB, or of linear light."""

import os
import pathlib
from typing import NamedTuple

import numpy as np

from ..io import FileError, read_exr, read_hdr, read_picture, write_exr, write_hdr, write_picture


class FilePixels(NamedTuple):
    """Straight colours of a file, opacity if it has any, and whether they are linear light."""

    rgb: np.ndarray  # height width 3
    alpha: np.ndarray | None  # height width
    linear: bool


def read_pixels(path: str | os.PathLike) -> FilePixels:
    """Reads a picture; the ending of its name gives the format."""
    ending = pathlib.Path(path).suffix.lower()
    if ending == ".hdr":
        return FilePixels(read_hdr(path), None, True)
    if ending == ".exr":
        return _exr_pixels(path)
    pixels = np.asarray(read_picture(path), np.float32) / 255
    alpha = pixels[..., 3] if pixels.shape[-1] == 4 else None
    return FilePixels(pixels[..., :3], alpha, False)


def _exr_pixels(path: str | os.PathLike) -> FilePixels:
    channels = read_exr(path)
    if not {"R", "G", "B"} <= channels.keys():
        raise FileError(f"{path} has no channels R, G and B; it has {', '.join(channels)}.")
    rgb, alpha = np.stack([channels[name] for name in "RGB"], axis=-1), channels.get("A")
    if alpha is not None:
        # OpenEXR's colours are multiplied by their opacity.
        rgb = rgb / np.where(alpha > 0, alpha, 1)[..., None]
    return FilePixels(rgb, alpha, True)


def write_pixels(
    path: str | os.PathLike, encoded: np.ndarray, linear: np.ndarray, depth: np.ndarray | None
) -> None:
    """Writes bytes of sRGB, or linear light, as the ending of the name says."""
    ending = pathlib.Path(path).suffix.lower()
    if ending == ".hdr":
        write_hdr(path, linear)
    elif ending == ".exr":
        channels = dict(zip("RGB", np.moveaxis(linear, -1, 0), strict=True))
        write_exr(path, channels if depth is None else channels | {"Z": depth})
    elif ending in (".png", ".jpg", ".jpeg", ".tif", ".tiff", ".bmp", ".webp"):
        write_picture(path, encoded)
    else:
        raise FileError(f"{path} must end in .png, .jpg, .tiff, .bmp, .webp, .exr or .hdr.")
