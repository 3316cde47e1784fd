import contextlib
import dataclasses
import functools
import json
import mmap
import pathlib
import shutil
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from ._atomic import atomic_write
from ._errors import FileError
from ._json import read_json, write_json


# Fewer rows are read by one thread; more are worth several, which wait for the disk together.
_ROWS_A_THREAD = 2**10
_THREADS = 16


@dataclasses.dataclass(frozen=True)
class MappedArray:
    """A matrix in a file, of which only the requested rows are read: it may exceed the memory."""

    # The file holds the rows one after the other and nothing else; `shape` is rows and columns.
    path: pathlib.Path
    shape: tuple[int, int]
    dtype: np.dtype

    @property
    def size(self) -> int:
        """The number of elements."""
        return self.shape[0] * self.shape[1]

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, index: Any) -> np.ndarray:
        return _map(self)[index]

    def take(self, rows: np.ndarray) -> np.ndarray:
        """Reads rows, whose numbers may have any shape; the columns are the last axis."""
        requested, source = rows.reshape(-1), _map(self)
        parts = np.array_split(requested, max(1, min(_THREADS, requested.size // _ROWS_A_THREAD)))
        if len(parts) == 1:
            found = [source.take(requested, axis=0)]
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
    # Rows are requested all over the file: reading ahead would be in vain.
    with contextlib.suppress(AttributeError):  # Windows has no such thing.
        mapped._mmap.madvise(mmap.MADV_RANDOM)  # pyright: ignore[reportAttributeAccessIssue]
    return np.asarray(mapped)


def write_mapped(
    path: pathlib.Path, blocks: Iterable[np.ndarray], about: dict[str, Any]
) -> MappedArray:
    """Writes a matrix block by block, all or nothing, with a description `about` in JSON."""
    # `about` is written last: it may still change while the blocks are made.
    path.parent.mkdir(parents=True, exist_ok=True)
    rows, columns, dtype = 0, 0, np.dtype(np.uint8)
    with atomic_write(path) as beside, beside.open("wb") as file:
        for block in blocks:
            rows, columns, dtype = rows + block.shape[0], block.shape[1], block.dtype
            file.write(np.ascontiguousarray(block).data)
    write_json(_header(path), {"shape": [rows, columns], "dtype": dtype.str, "about": about})
    return MappedArray(path, (rows, columns), dtype)


def open_mapped(path: pathlib.Path) -> tuple[MappedArray, dict[str, Any]] | None:
    """Opens a matrix and its description; `None` if they are not there, or not whole."""
    try:
        header = read_json(_header(path))
        (rows, columns), dtype = map(int, header["shape"]), np.dtype(header["dtype"])
        if path.stat().st_size != rows * columns * dtype.itemsize:
            return None
        return MappedArray(path, (rows, columns), dtype), header["about"]
    except (FileError, OSError, LookupError, TypeError, ValueError, json.JSONDecodeError):
        return None


def require_space(folder: pathlib.Path, size: int) -> None:
    """Refuses a file of `size` bytes that does not fit on the folder's disk."""
    free = shutil.disk_usage(folder).free
    if free < size:
        raise FileError(
            f"{folder} has {free / 2**30:.1f} GiB of free space; the pictures take "
            f"{size / 2**30:.1f} GiB. Free some space there, or name another folder in "
            "SCENEGRAPH_CACHE."
        )


def _header(path: pathlib.Path) -> pathlib.Path:
    return path.with_name(path.name + ".json")
