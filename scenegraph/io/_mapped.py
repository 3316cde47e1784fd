import contextlib
import dataclasses
import functools
import json
import mmap
import os
import pathlib
import shutil
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from ._errors import FileError
from ._json import read_json, write_json


# Fewer rows are read by one thread; more are worth several, which wait for the disk together.
_ROWS_A_THREAD = 2**10
_THREADS = 16


@dataclasses.dataclass(frozen=True)
class MappedArray:
    """A matrix in a file, of which only what is asked for is read: it may be larger than memory.

    **Arguments:**

    - `path`: of the file, which holds the rows one after the other and nothing else.
    - `shape`: rows and columns.
    - `dtype`: of the numbers.
    """

    path: pathlib.Path
    shape: tuple[int, int]
    dtype: np.dtype

    @property
    def size(self) -> int:
        """How many numbers there are."""
        return self.shape[0] * self.shape[1]

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, index: Any) -> np.ndarray:
        return _map(self)[index]

    def take(self, rows: np.ndarray) -> np.ndarray:
        """Some rows.

        **Arguments:**

        - `rows`: their numbers, in an array of any shape.

        **Returns:**

        An array in memory, with the columns as its last axis.
        """
        wanted, source = rows.reshape(-1), _map(self)
        parts = np.array_split(wanted, max(1, min(_THREADS, wanted.size // _ROWS_A_THREAD)))
        if len(parts) == 1:
            found = [source.take(wanted, axis=0)]
        else:
            found = list(_readers().map(lambda part: source.take(part, axis=0), parts))
        return np.concatenate(found).reshape(*rows.shape, self.shape[1])


@functools.cache
def _readers() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(_THREADS, "scenegraph-reader")


@functools.lru_cache(maxsize=16)
def _map(array: MappedArray) -> np.ndarray:
    try:
        mapped = np.memmap(array.path, array.dtype, "r", shape=array.shape)
    except (OSError, ValueError) as error:
        raise FileError(f"cannot read {array.path}: {error}.") from error
    # Rows are asked for all over the file: what comes after one is not worth reading.
    with contextlib.suppress(AttributeError):  # Windows has no such thing.
        mapped._mmap.madvise(mmap.MADV_RANDOM)  # pyright: ignore[reportAttributeAccessIssue]
    return np.asarray(mapped)


def write_mapped(
    path: pathlib.Path, blocks: Iterable[np.ndarray], about: dict[str, Any]
) -> MappedArray:
    """Writes a matrix, block by block: beside the file first, then renamed.

    **Arguments:**

    - `path`: of the file; a second one, `.json`, says what is in it.
    - `blocks`: of rows, with equally many columns and of one type.
    - `about`: what else to remember that JSON can hold; it may still change while blocks are made.

    **Returns:**

    The matrix.

    **Errors:**

    `OSError` if there is no room for it.
    """
    beside = path.with_name(f"{path.name}.{os.getpid()}.part")
    path.parent.mkdir(parents=True, exist_ok=True)
    rows, columns, dtype = 0, 0, np.dtype(np.uint8)
    try:
        with beside.open("wb") as file:
            for block in blocks:
                rows, columns, dtype = rows + block.shape[0], block.shape[1], block.dtype
                file.write(np.ascontiguousarray(block).data)
        os.replace(beside, path)
    finally:
        beside.unlink(missing_ok=True)
    write_json(_header(path), {"shape": [rows, columns], "dtype": dtype.str, "about": about})
    return MappedArray(path, (rows, columns), dtype)


def open_mapped(path: pathlib.Path) -> tuple[MappedArray, dict[str, Any]] | None:
    """Finds a matrix that was written before.

    **Arguments:**

    - `path`: of the file.

    **Returns:**

    The matrix and what else was remembered; `None` if it is not there, or not whole.
    """
    try:
        header = read_json(_header(path))
        (rows, columns), dtype = map(int, header["shape"]), np.dtype(header["dtype"])
        if path.stat().st_size != rows * columns * dtype.itemsize:
            return None
        return MappedArray(path, (rows, columns), dtype), header["about"]
    except (FileError, OSError, LookupError, TypeError, ValueError, json.JSONDecodeError):
        return None


def require_room(folder: pathlib.Path, size: int) -> None:
    """Makes sure that a file will fit on the disk.

    **Arguments:**

    - `folder`: for the file; it exists.
    - `size`: in bytes.

    **Errors:**

    `FileError` if it will not.
    """
    free = shutil.disk_usage(folder).free
    if free < size:
        raise FileError(
            f"{folder} has room for {free / 2**30:.1f} GiB; the pictures take {size / 2**30:.1f}. "
            "Make room there, or name another folder in SCENEGRAPH_CACHE."
        )


def _header(path: pathlib.Path) -> pathlib.Path:
    return path.with_name(path.name + ".json")
