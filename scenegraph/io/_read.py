import os
import pathlib
import stat

from ._errors import FileError


def require_regular(path: str | os.PathLike) -> None:
    """Refuses pipes, devices and sockets, which may never end; what is not there is not refused."""
    try:
        mode = os.stat(path).st_mode
    except (OSError, ValueError):
        return
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        raise FileError(f"{path} is a pipe or a device; only regular files are read.")


def read_bytes(path: pathlib.Path) -> bytes:
    """Returns the bytes of a file; a file that cannot be read is a `FileError`."""
    require_regular(path)
    try:
        return path.read_bytes()
    except OSError as error:
        raise FileError(f"cannot read {path}: {error.strerror}.") from error
