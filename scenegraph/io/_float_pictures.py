"""Picture files of floating numbers."""

import os
from collections.abc import Mapping

import imageio.v3 as iio
import numpy as np

from ._atomic import written_whole
from ._extras import import_extra


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

    `MissingExtra` without the extra `exr`.
    """
    exr = import_extra("OpenEXR", "exr", f"writing {path}")
    header = {"compression": exr.ZIP_COMPRESSION, "type": exr.scanlineimage}
    parts = {name: np.ascontiguousarray(x, np.float32) for name, x in channels.items()}
    with written_whole(path) as beside, exr.File(header, parts) as file:
        file.write(os.fspath(beside))


def require_exr() -> None:
    """Makes sure that OpenEXR files can be written, before work begins on what goes into them.

    **Errors:**

    `MissingExtra` without the extra `exr`.
    """
    import_extra("OpenEXR", "exr", "writing .exr files")
