"""The writing of files: whole or not at all, and never through a link.

Folders may come from others: a link in one of them could point to any file of the user.
"""

import contextlib
import os
import pathlib
import secrets
import stat
import time
from collections.abc import Callable
from typing import Any, BinaryIO

from ._errors import FileError


# The mark in a file's name, before its ending, while the file is being written.
PART = ".part"
# Seconds after which such a file is that of a process that was killed.
_OLD = 3600.0
# Windows opens files as text otherwise, and has no flag for links.
_FLAGS = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)


@contextlib.contextmanager
def atomic_write(path: str | os.PathLike) -> Any:
    """Yields a path to write to that replaces `path` when all is on the disk, or else vanishes."""
    target = pathlib.Path(path)
    beside = target.with_name(f"{target.stem}.{secrets.token_hex(8)}{PART}{target.suffix}")
    try:
        # Nothing of this name is there: neither a file nor a link.
        os.close(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _FLAGS, 0o666))
        yield beside
        with beside.open("rb") as file:
            os.fsync(file.fileno())
        os.replace(beside, target)
    except BaseException as error:
        with contextlib.suppress(OSError):
            beside.unlink(missing_ok=True)
        if isinstance(error, OSError):
            error.filename = os.fspath(path)  # a full disk does not say which file it was
        raise
    _sync_folder(target.parent)


def replace_file(path: str | os.PathLike, write: Callable[[BinaryIO], Any]) -> None:
    """Replaces a file by what `write` writes to an open binary file, when all is on the disk."""
    with atomic_write(path) as beside, beside.open("wb") as file:
        write(file)


def open_in_place(path: str | os.PathLike) -> int:
    """Opens a file to be read and appended to, which is made if there is none; refuses a link."""
    if os.path.islink(path):
        raise FileError(f"{path} is a link; nothing is written through it.")
    number = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | _FLAGS, 0o666)
    if not stat.S_ISREG(os.fstat(number).st_mode):
        os.close(number)
        raise FileError(f"{path} is a pipe or a device; nothing is written to it.")
    return number


def has_other_names(number: int) -> bool:
    """Returns true for an open file that has further names, which may be those of other folders."""
    return os.fstat(number).st_nlink > 1


def require_no_links(folder: pathlib.Path) -> pathlib.Path:
    """Returns a folder that is no link and holds none to other folders; refuses any other."""
    links = [folder] if folder.is_symlink() else []
    for parent, names, _ in os.walk(folder):
        links += [path for name in names if (path := pathlib.Path(parent, name)).is_symlink()]
    if links:
        raise FileError(f"{links[0]} is a link; nothing is written through it.")
    return folder


def drop_parts(folder: pathlib.Path) -> None:
    """Removes what a process left behind that was killed while it wrote."""
    for path in folder.glob(f"*{PART}*"):
        with contextlib.suppress(OSError):
            if time.time() - path.lstat().st_mtime > _OLD:
                path.unlink()


def _sync_folder(folder: pathlib.Path) -> None:
    # The new name, too, has to be on the disk; not every system can do this.
    with contextlib.suppress(OSError):
        number = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(number)
        finally:
            os.close(number)
