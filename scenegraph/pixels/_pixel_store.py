"""All pixels of all pictures in one list: in memory, or in a file that is read where needed."""

import contextlib
import hashlib
import os
import pathlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import jax
import numpy as np

from .._typing import Array, Float, UInt8
from ..io import FileError, MappedArray, open_mapped, require_space, write_mapped
from ._decoded_cache import recall_pixels


# Pictures take up to this share of the free memory, of the host's and of each device's; larger
# ones are left in a file. Loading needs space for a second and a third copy.
_MEMORY_SHARE = 0.25
# The number of pictures that are read at a time while a file is made.
_AT_A_TIME = 32
# Another number makes the files of earlier versions, which read some pictures otherwise, unused.
_VERSION = 3

Shape = tuple[int, int, int]
PixelArray = UInt8[Array, "pixels channels"] | Float[Array, "pixels channels"] | MappedArray


class _ReadPicture(NamedTuple):
    """A picture's shape in its file, and its pixels after `change`."""

    shape: Shape
    pixels: np.ndarray


def gather_pixels(
    files: list[pathlib.Path],
    read: Callable[[int], np.ndarray],
    change: Callable[[np.ndarray], np.ndarray] = lambda picture: picture,
    *,
    settings: str = "",
    memory_map: bool | None = None,
    one_size: bool = True,
) -> tuple[PixelArray, list[Shape]]:
    """Reads pictures, changes each, and lists all their pixels; also returns the files' shapes."""
    # The first picture decides how large the list will be, and what the others must be like: of its
    # size, or, where sizes may differ, of as many channels.
    first = read(0)
    begin = _ReadPicture(first.shape, change(first))
    size = begin.pixels.nbytes * len(files)

    def read_alike(index: int) -> _ReadPicture:
        picture = read(index)
        alike = picture.shape[2] == first.shape[2] and not one_size
        if not alike and picture.shape != first.shape:
            rule = "be alike" if one_size else "have as many channels"
            raise FileError(
                f"{files[index]} has shape {picture.shape} (height, width, channels); the first "
                f"picture, {files[0]}, has {first.shape}. All must {rule}."
            )
        return _ReadPicture(picture.shape, change(picture))

    if memory_map is None:
        memory_map = size > _MEMORY_SHARE * free_memory()
    if memory_map:
        return _from_cache(files, read_alike, settings, size)

    def decode() -> tuple[np.ndarray, list[Shape]]:
        with ThreadPoolExecutor() as pool:
            pictures = [begin, *pool.map(read_alike, range(1, len(files)))]
        flat = np.concatenate([_flatten(picture.pixels) for picture in pictures])
        return flat, [picture.shape for picture in pictures]

    # What is alike and what is refused depends on whether sizes may differ.
    about = f"{_VERSION} {settings} {one_size}"
    flat, shapes = recall_pixels(files, about, size, cache_folder() / "decoded", decode)
    return jax.device_put(flat), shapes


def free_memory() -> float:
    """Returns the free bytes of host or device, whichever has less; infinite if nobody knows."""
    stats = jax.local_devices()[0].memory_stats() or {}
    on_device = stats.get("bytes_limit", np.inf) - stats.get("bytes_in_use", 0)
    return float(min(on_device, free_on_host()))


def free_on_host() -> float:
    """Returns the bytes of memory that the system has left; infinite if it does not say."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        for line in pathlib.Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return 1024 * float(line.split()[1])
    return np.inf


def _from_cache(
    files: list[pathlib.Path], read: Callable[[int], _ReadPicture], settings: str, size: int
) -> tuple[PixelArray, list[Shape]]:
    # One name for the same request, and one file for the present state of its pictures.
    name, fingerprint = _cache_key(files, settings)
    folder = cache_folder() / "pixels"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}-{fingerprint}.bin"
    with _locked(folder / f"{name}.lock"):
        found = open_mapped(path)
        if found is None:
            require_space(folder, size)
            about = {"shapes": []}
            found = (
                write_mapped(path, _read_blocks(len(files), read, about["shapes"]), about),
                about,
            )
            _remove_stale(folder, name, path)
    pixels, about = found
    return pixels, [(height, width, channels) for height, width, channels in about["shapes"]]


def _read_blocks(
    count: int, read: Callable[[int], _ReadPicture], shapes: list[Shape]
) -> Iterator[np.ndarray]:
    """Yields the pixels of one picture after the other, and appends their shapes."""
    # So many at a time, because a pool would read all pictures before the first is written.
    with ThreadPoolExecutor() as pool:
        for start in range(0, count, _AT_A_TIME):
            for picture in pool.map(read, range(start, min(start + _AT_A_TIME, count))):
                shapes.append(picture.shape)
                yield _flatten(picture.pixels)


def _flatten(pixels: np.ndarray) -> np.ndarray:
    return pixels.reshape(-1, pixels.shape[2])


def cache_folder() -> pathlib.Path:
    """Returns the cache folder: `SCENEGRAPH_CACHE`, or one in the user's cache."""
    if named := os.environ.get("SCENEGRAPH_CACHE"):
        return pathlib.Path(named)
    base = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    return pathlib.Path(base) / "scenegraph"


def _cache_key(files: list[pathlib.Path], settings: str) -> tuple[str, str]:
    """Hashes what is requested (the name), and the present state of the files (the fingerprint)."""
    name, fingerprint = hashlib.sha256(), hashlib.sha256()
    name.update(f"{_VERSION} {settings}".encode())
    for file in files:
        try:
            status = file.stat()
        except OSError as error:
            raise FileError(f"cannot read the picture {file}: {error.strerror}.") from error
        name.update(f"\0{file.resolve()}".encode())
        fingerprint.update(f"{status.st_size} {status.st_mtime_ns} ".encode())
    return name.hexdigest()[:16], fingerprint.hexdigest()[:16]


@contextlib.contextmanager
def _locked(path: pathlib.Path) -> Iterator[None]:
    """Lets one process at a time make the file; the others then find it."""
    with path.open("a") as file:
        # Not all systems can do this; where they cannot, the same file is made twice.
        with contextlib.suppress(ImportError, OSError):
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _remove_stale(folder: pathlib.Path, name: str, kept: pathlib.Path) -> None:
    """Removes what was made of the same files before these changed."""
    for old in folder.glob(f"{name}-*"):
        if not old.name.startswith(kept.name):
            old.unlink(missing_ok=True)
