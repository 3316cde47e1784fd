import contextlib
import os
import pathlib
from collections.abc import Callable
from typing import Any, BinaryIO


# The mark in a file's name, before its ending, while the file is being written.
PART = ".part"


@contextlib.contextmanager
def atomic_write(path: str | os.PathLike) -> Any:
    """Yields a path to write to that replaces `path` when all is on the disk, or else vanishes."""
    target = pathlib.Path(path)
    beside = target.with_name(target.stem + PART + target.suffix)
    try:
        yield beside
        with beside.open("rb") as file:
            os.fsync(file.fileno())
        os.replace(beside, target)
    except BaseException as error:
        beside.unlink(missing_ok=True)
        if isinstance(error, OSError):
            error.filename = os.fspath(path)  # a full disk does not say which file it was
        raise
    _sync_folder(target.parent)


def replace_file(path: str | os.PathLike, write: Callable[[BinaryIO], Any]) -> None:
    """Replaces a file by what `write` writes to an open binary file, when all is on the disk."""
    with atomic_write(path) as beside, beside.open("wb") as file:
        write(file)


def _sync_folder(folder: pathlib.Path) -> None:
    # The new name, too, has to be on the disk; not every system can do this.
    with contextlib.suppress(OSError):
        number = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(number)
        finally:
            os.close(number)
