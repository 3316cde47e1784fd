"""Files that a file names, of which only those beside it or below are read; and texts."""

import codecs
import os
import pathlib

from ..io import FileError
from ._fields import shown


_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


def decode_text(data: bytes) -> str:
    """Decodes a text file: UTF-8, or UTF-16, with a mark at its beginning or without."""
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return data[len(mark) :].decode(encoding, "replace")
    # Of ASCII in UTF-16, every second byte is zero.
    if data[1:2] == b"\0" != data[:1]:
        return data.decode("utf-16-le", "replace")
    if data[:1] == b"\0" != data[1:2] and len(data) > 1:
        return data.decode("utf-16-be", "replace")
    return data.decode("utf-8", "replace")


def path_inside(folder: pathlib.Path, name: str, where: str) -> pathlib.Path:
    """Returns the path of a file that a file names, which must lie in the same folder or below."""
    try:
        path, whole = folder / name.replace("\\", "/"), folder.resolve()
        if ":" in name.split("/")[0] or not path.resolve().is_relative_to(whole):
            raise FileError(
                f"{where} is {shown(name)}, which is not in the folder {folder}; only files beside "
                "it or below are read. Copy it there."
            )
    except (OSError, ValueError, RuntimeError) as error:
        if isinstance(error, FileError):
            raise
        raise FileError(f"{where} is {shown(name)}, which is no path ({error}).") from error
    return path


def find_beside(folder: pathlib.Path, name: str) -> pathlib.Path | None:
    """Returns the path of a file that a file names, or of one of its name; `None` if there is none.

    Of a path that leads out of the folder, the last name is searched beside the file; letters may
    be small or large.
    """
    plain = name.replace("\\", "/")
    for candidate in dict.fromkeys((plain, plain.rsplit("/", 1)[-1])):
        try:
            path = path_inside(folder, candidate, "the file")
            if path.is_file():
                return path
            if path.parent.is_dir() and len(path.name) < 256:
                for other in os.listdir(path.parent):
                    if other.lower() == path.name.lower() and (path.parent / other).is_file():
                        beside = candidate[: len(candidate) - len(path.name)] + other
                        return path_inside(folder, beside, "the file")
        except (FileError, OSError, ValueError):
            continue
    return None


def read_beside(path: pathlib.Path, where: str) -> bytes:
    """Returns the bytes of a file that another one names."""
    try:
        if path.exists() and not path.is_file():
            raise OSError("it is no file")
        return path.read_bytes()
    except (OSError, ValueError) as error:
        raise FileError(f"{where}: cannot read {path} ({error}).") from error
