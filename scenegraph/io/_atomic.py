import contextlib
import os
import pathlib
from collections.abc import Callable
from typing import Any, BinaryIO


# What is in a name, before its ending, while the file is being written.
PART = ".part"


@contextlib.contextmanager
def written_whole(path: str | os.PathLike) -> Any:
    """A place beside a file to write to; when all is on the disk, it becomes the file.

    So a file is never half there, whatever happens.

    **Arguments:**

    - `path`: of the file; its folder exists.

    **Returns:**

    A context whose value is the place; it has the same ending.

    **Errors:**

    Those of the writing, and `OSError` where there is no room or no right to write. What there was
    before then stays as it was, and nothing is left beside it.
    """
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
    """Puts a file in place of another when all of it is on the disk.

    **Arguments:**

    - `path`: of the file; its folder exists.
    - `write`: called with an open binary file.

    **Errors:**

    As of `written_whole`.
    """
    with written_whole(path) as beside, beside.open("wb") as file:
        write(file)


def _sync_folder(folder: pathlib.Path) -> None:
    """Makes a new name last; not every system can."""
    with contextlib.suppress(OSError):
        number = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(number)
        finally:
            os.close(number)
