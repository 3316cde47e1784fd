import contextlib
import os
import pathlib
from collections.abc import Callable
from typing import Any, BinaryIO


# What a name ends in while its file is being written.
PART = ".part"


def replace_file(path: str | os.PathLike, write: Callable[[BinaryIO], Any]) -> None:
    """Puts a file in place of another when all of it is on the disk.

    **Arguments:**

    - `path`: of the file; its folder exists.
    - `write`: called with an open binary file.

    **Errors:**

    Those of `write`, and `OSError` where there is no room or no right to write. What there was
    before then stays as it was, and nothing is left beside it.
    """
    target = pathlib.Path(path)
    beside = target.with_name(target.name + PART)
    try:
        with beside.open("wb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, target)
    except BaseException as error:
        beside.unlink(missing_ok=True)
        if isinstance(error, OSError):
            error.filename = os.fspath(path)  # a full disk does not say which file it was
        raise
    _sync_folder(target.parent)


def _sync_folder(folder: pathlib.Path) -> None:
    """Makes a new name last; not every system can."""
    with contextlib.suppress(OSError):
        number = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(number)
        finally:
            os.close(number)
