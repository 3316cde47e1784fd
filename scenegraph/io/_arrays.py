import os
import pathlib

import numpy as np

from ._errors import FileError


def read_array(path: str | os.PathLike) -> np.ndarray:
    """Reads a NumPy file (`.npy`) of numbers; nothing in the file is ever run.

    **Arguments:**

    - `path`: of the file.

    **Returns:**

    The array, float64.

    **Errors:**

    `FileError` for a file that is missing, cut, or holds something else than numbers: Python
    objects are refused, because reading them runs what they say.
    """
    try:
        # A map of the file is not larger than the file, whatever its header claims.
        array = np.lib.format.open_memmap(pathlib.Path(path), mode="r")
    except FileNotFoundError as error:
        raise FileError(f"there is no file {path}.") from error
    except Exception as error:  # noqa: BLE001 - whatever a damaged header makes the reader raise
        raise FileError(f"{path} is damaged, or not a NumPy file of numbers ({error}).") from error
    if not np.issubdtype(array.dtype, np.floating) and not np.issubdtype(array.dtype, np.integer):
        raise FileError(f"{path} must hold real numbers; it holds {array.dtype}.")
    return np.array(array, dtype=np.float64)
