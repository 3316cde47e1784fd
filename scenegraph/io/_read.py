import pathlib

from ._errors import FileError


def read_bytes(path: pathlib.Path) -> bytes:
    """Returns the bytes of a file; a file that cannot be read is a `FileError`."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise FileError(f"cannot read {path}: {error.strerror}.") from error
