"""Picture files of floating numbers."""

import os
from collections.abc import Mapping

import imageio.v3 as iio
import numpy as np

from ._atomic import atomic_write
from ._errors import FileError
from ._extras import import_extra
from ._read import require_regular


def write_float_picture(path: str | os.PathLike, numbers: np.ndarray) -> None:
    """Writes numbers `height width`, row 0 at the top, as a TIFF file of 32-bit floats."""
    with atomic_write(path) as beside:
        iio.imwrite(beside, np.asarray(numbers, np.float32), plugin="pillow")


def write_exr(path: str | os.PathLike, channels: Mapping[str, np.ndarray]) -> None:
    """Writes channels `height width`, by name, as an OpenEXR file of 32-bit floats."""
    exr = import_extra("OpenEXR", "exr", f"writing {path}")
    header = {"compression": exr.ZIP_COMPRESSION, "type": exr.scanlineimage}
    parts = {name: np.ascontiguousarray(x, np.float32) for name, x in channels.items()}
    with atomic_write(path) as beside, exr.File(header, parts) as file:
        file.write(os.fspath(beside))


def read_exr(path: str | os.PathLike) -> dict[str, np.ndarray]:
    """Reads the channels `height width` of an OpenEXR file, by name, as 32-bit floats."""
    exr = import_extra("OpenEXR", "exr", f"reading {path}")
    require_regular(path)
    if not os.path.exists(path):
        raise FileError(f"there is no picture {path}.")
    try:
        with exr.File(os.fspath(path), separate_channels=True) as file:
            channels = file.channels()
            return {name: np.asarray(x.pixels, np.float32) for name, x in channels.items()}
    except (RuntimeError, ValueError, TypeError) as error:
        raise FileError(f"cannot read the picture {path}: it is damaged ({error}).") from error


def require_exr() -> None:
    """Refuses to begin work on OpenEXR files that could not be written in the end."""
    import_extra("OpenEXR", "exr", "writing .exr files")
