"""A lock of the operating system on a folder, which ends with the process that holds it."""

import contextlib
import os
import pathlib
import socket
import sys
from collections.abc import Iterator
from typing import TextIO

from ._atomic import has_other_names, open_in_place
from ._errors import FileError


LOCK_FILE = "lock"
# Bytes behind all text are locked on Windows, where nobody else could read a locked one.
_BEYOND = 2**20


if sys.platform == "win32":
    import msvcrt

    def _acquire(file: TextIO) -> None:
        file.seek(_BEYOND)
        msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)

else:
    import fcntl

    def _acquire(file: TextIO) -> None:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


@contextlib.contextmanager
def locked_folder(folder: pathlib.Path, holder: str) -> Iterator[None]:
    """Holds a folder, which is made, for one process; folders left empty are removed in the end.

    Another process gets a `FileError` that names `holder` and the process that is it.
    """
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / LOCK_FILE
    try:
        with _open_locked(path, folder, holder):
            yield
    finally:
        with contextlib.suppress(OSError):  # a folder that is not empty ends the list
            for made in missing:
                made.rmdir()


@contextlib.contextmanager
def _open_locked(path: pathlib.Path, folder: pathlib.Path, holder: str) -> Iterator[None]:
    while True:
        with open(open_in_place(path), "a+", encoding="utf-8") as file:
            if not _try(file):
                raise FileError(
                    f"{folder} is in use by {holder} ({_owner(file)}). Wait for its end, or pass "
                    "another --out."
                )
            # The process before may have removed the file between `open` and the lock.
            if not _is_same(path, file):
                continue
            if has_other_names(file.fileno()):
                path.unlink()
                continue
            file.truncate(0)
            file.write(f"process {os.getpid()} on {socket.gethostname()}")
            file.flush()
            try:
                yield
            finally:
                with contextlib.suppress(OSError):  # Windows keeps files that are open.
                    path.unlink()
            return


def _try(file: TextIO) -> bool:
    """Returns false if another process has the lock."""
    try:
        _acquire(file)
    except (BlockingIOError, PermissionError):
        return False
    except OSError:  # A file system without locks; the fit goes on without one.
        return True
    return True


def _is_same(path: pathlib.Path, file: TextIO) -> bool:
    with contextlib.suppress(OSError):
        return os.path.samestat(path.stat(), os.fstat(file.fileno()))
    return False


def _owner(file: TextIO) -> str:
    file.seek(0)
    return file.read(200).strip() or "another process"
