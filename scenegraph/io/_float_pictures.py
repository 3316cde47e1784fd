"""Picture files of floating numbers."""

import importlib
import os
from collections.abc import Mapping
from typing import Any

import imageio.v3 as iio
import numpy as np

from ._errors import FileError
from ._whole import written_whole


def write_float_picture(path: str | os.PathLike, numbers: np.ndarray) -> None:
    """Writes one number a pixel as a TIFF file of 32-bit floats.

    **Arguments:**

    - `path`: of the file, which ends in `.tiff`; its folder exists.
    - `numbers`: `height width`, row 0 at the top.
    """
    with written_whole(path) as beside:
        iio.imwrite(beside, np.asarray(numbers, np.float32), plugin="pillow")


def write_exr(path: str | os.PathLike, channels: Mapping[str, np.ndarray]) -> None:
    """Writes an OpenEXR file of 32-bit floats, compressed without loss.

    **Arguments:**

    - `path`: of the file; its folder exists.
    - `channels`: arrays `height width` by name, row 0 at the top. Programs look for `R`, `G`, `B`,
      `A` and `Z`; further layers are named `layer.X`.

    **Errors:**

    `FileError` without the extra `exr`.
    """
    exr = _import_exr(f"cannot write {path}")
    header = {"compression": exr.ZIP_COMPRESSION, "type": exr.scanlineimage}
    parts = {name: np.ascontiguousarray(x, np.float32) for name, x in channels.items()}
    with written_whole(path) as beside, exr.File(header, parts) as file:
        file.write(os.fspath(beside))


def require_exr() -> None:
    """Makes sure that OpenEXR files can be written, before work begins on what goes into them.

    **Errors:**

    `FileError` without the extra `exr`.
    """
    _import_exr("cannot write .exr files")


def _import_exr(what: str) -> Any:
    try:
        return importlib.import_module("OpenEXR")
    except ImportError as error:
        raise FileError(f"{what}: needs `pip install scenegraph[exr]` ({error}).") from error
