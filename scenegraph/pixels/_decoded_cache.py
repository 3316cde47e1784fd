"""Decoded and downscaled pictures, kept in the cache by the content of their files."""

import contextlib
import hashlib
import os
import pathlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from ..io import open_mapped, read_bytes, write_mapped


# All that is kept, in bytes; beyond that, what has not been used for longest goes.
_MOST = 2**31
# What takes less is read as fast from the pictures; what takes more would push out all else.
_LEAST, _LARGEST = 2**20, _MOST // 2

Shapes = list[tuple[int, int, int]]


def recall_pixels(
    files: list[pathlib.Path],
    settings: str,
    size: int,
    folder: pathlib.Path,
    decode: Callable[[], tuple[np.ndarray, Shapes]],
) -> tuple[np.ndarray, Shapes]:
    """Returns the pixels of pictures, `pixels channels`, and the files' shapes.

    They come from `folder`, if the same content was decoded with the same settings before, and
    from `decode` otherwise. `size` is the number of bytes that is expected. The folder may be
    deleted at any time, and a full disk only means that nothing is kept.
    """
    if not _LEAST <= size <= _LARGEST:
        return decode()
    path = folder / f"{_content_key(files, settings)}.bin"
    found = _read(path)
    if found is not None:
        return found
    pixels, shapes = decode()
    with contextlib.suppress(OSError):
        write_mapped(path, [pixels], {"shapes": shapes})
        _forget_oldest(folder)
    return pixels, shapes


def _read(path: pathlib.Path) -> tuple[np.ndarray, Shapes] | None:
    """Reads a whole entry, and marks it as used; `None` if there is none."""
    found = open_mapped(path)
    if found is None:
        return None
    (array, about), pixels = found, None
    with contextlib.suppress(OSError, ValueError):
        pixels = np.fromfile(path, array.dtype).reshape(array.shape)
        os.utime(path)
    shapes = [(height, width, channels) for height, width, channels in about["shapes"]]
    return None if pixels is None else (pixels, shapes)


def _content_key(files: list[pathlib.Path], settings: str) -> str:
    """Hashes settings, and the content of the files in order."""
    digest = hashlib.blake2b(settings.encode(), digest_size=16)
    with ThreadPoolExecutor() as pool:
        for part in pool.map(_hash_file, files):
            digest.update(part)
    return digest.hexdigest()


def _hash_file(file: pathlib.Path) -> bytes:
    return hashlib.blake2b(read_bytes(file), digest_size=16).digest()


def _forget_oldest(folder: pathlib.Path) -> None:
    """Removes the entries that were not used for longest, until the rest is small enough."""
    entries: list[tuple[Any, pathlib.Path]] = []
    for path in folder.glob("*.bin"):
        with contextlib.suppress(OSError):
            entries.append((path.stat(), path))
    kept = 0
    for status, path in sorted(entries, key=lambda entry: -entry[0].st_mtime):
        kept += status.st_size
        if kept > _MOST:
            path.unlink(missing_ok=True)
            path.with_name(path.name + ".json").unlink(missing_ok=True)
