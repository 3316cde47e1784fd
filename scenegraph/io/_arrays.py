import os
import pathlib

import numpy as np

from ._errors import FileError
from ._read import require_regular


def read_array(path: str | os.PathLike) -> np.ndarray:
    """Reads a NumPy file (`.npy`) of numbers as float64; nothing in the file is executed."""
    require_regular(path)
    try:
        # A map of the file is not larger than the file, whatever its header claims, and Python
        # objects, which would be executed when read, are refused.
        array = np.lib.format.open_memmap(pathlib.Path(path), mode="r")
    except FileNotFoundError as error:
        raise FileError(f"there is no file {path}.") from error
    except Exception as error:  # noqa: BLE001 - whatever a damaged header makes the reader raise
        raise FileError(f"{path} is damaged, or not a NumPy file of numbers ({error}).") from error
    if not np.issubdtype(array.dtype, np.floating) and not np.issubdtype(array.dtype, np.integer):
        raise FileError(f"{path} must hold real numbers; it holds {array.dtype}.")
    return np.array(array, dtype=np.float64)
