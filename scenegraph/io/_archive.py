"""One file of arrays with a JSON header: a zip archive that holds no code."""

import io
import json
import os
import pathlib
import zipfile
from typing import Any

import numpy as np

from ._errors import FileError


_HEADER = "header.json"


def write_archive(
    path: str | os.PathLike, header: dict[str, Any], arrays: list[np.ndarray]
) -> None:
    """Writes arrays and a header: beside the file first, then renamed.

    **Arguments:**

    - `path`: of the file; its folder exists.
    - `header`: what JSON can hold.
    - `arrays`: of any shape; no objects.
    """
    target = pathlib.Path(path)
    beside = target.with_name(target.name + ".part")
    with zipfile.ZipFile(beside, "w") as archive:
        archive.writestr(_HEADER, json.dumps(header))
        for index, array in enumerate(arrays):
            buffer = io.BytesIO()
            np.lib.format.write_array(buffer, np.asarray(array), allow_pickle=False)
            archive.writestr(f"{index}.npy", buffer.getvalue())
    os.replace(beside, target)


def read_archive(path: str | os.PathLike) -> tuple[dict[str, Any], list[np.ndarray]]:
    """Reads what `write_archive` wrote; nothing in the file is ever run.

    **Arguments:**

    - `path`: of the file.

    **Returns:**

    The header and the arrays.

    **Errors:**

    `FileError` for a file that is missing, cut or altered.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            header = json.loads(archive.read(_HEADER))
            count = len(archive.namelist()) - 1
            arrays = [_read_array(archive.read(f"{index}.npy")) for index in range(count)]
    except FileNotFoundError as error:
        raise FileError(f"there is no file {path}.") from error
    except Exception as error:  # noqa: BLE001 - whatever a damaged archive makes the readers raise
        raise FileError(f"{path} is damaged or not a scenegraph file ({error}).") from error
    if not isinstance(header, dict):
        raise FileError(f"{path} is not a scenegraph file: its header is not an object.")
    return header, arrays


def _read_array(data: bytes) -> np.ndarray:
    return np.lib.format.read_array(io.BytesIO(data), allow_pickle=False)
