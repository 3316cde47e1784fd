"""One file of arrays with a JSON header: a zip archive that holds no code."""

import hashlib
import io
import json
import math
import os
import zipfile
from collections.abc import Callable
from typing import Any, BinaryIO

import numpy as np

from ._atomic import replace_file
from ._errors import DamagedFile, FileError
from ._read import require_regular


_HEADER = "header.json"
# Its one line is the SHA-256 of the bytes of all other members, in order.
_DIGEST = "sha256"


def write_archive(
    path: str | os.PathLike, header: dict[str, Any], arrays: list[np.ndarray]
) -> None:
    """Writes arrays and a JSON header in place of what was there, all or nothing."""
    text = json.dumps({"digest": _DIGEST, **header}).encode()
    replace_file(path, lambda file: _write_members(file, text, arrays))


def _write_members(file: BinaryIO, text: bytes, arrays: list[np.ndarray]) -> None:
    with zipfile.ZipFile(file, "w") as archive:
        digest = hashlib.sha256(text)
        archive.writestr(_HEADER, text)
        for index, array in enumerate(arrays):
            buffer = io.BytesIO()
            np.lib.format.write_array(buffer, np.asarray(array), allow_pickle=False)
            with buffer.getbuffer() as data:
                digest.update(data)
                archive.writestr(f"{index}.npy", data)
        archive.writestr(_DIGEST, digest.hexdigest())


def read_archive(path: str | os.PathLike) -> tuple[dict[str, Any], list[np.ndarray]]:
    """Reads header and arrays of what `write_archive` wrote; nothing in the file is executed."""
    return _read(path, _read_members)


def read_header(path: str | os.PathLike) -> dict[str, Any]:
    """Reads only the header of what `write_archive` wrote; the arrays are not checked."""
    return _read(path, lambda archive: _parse(_member(archive, _HEADER))[0])


def _read(path: str | os.PathLike, part: Callable[[zipfile.ZipFile], Any]) -> Any:
    require_regular(path)
    try:
        with zipfile.ZipFile(path) as archive:
            # Members may not lie in each other: few bytes would be many arrays.
            if sum(x.compress_size for x in archive.infolist()) > os.path.getsize(path):
                raise ValueError("its members are longer than the file")
            return part(archive)
    except FileNotFoundError as error:
        raise FileError(f"there is no file {path}.") from error
    except Exception as error:  # noqa: BLE001 - whatever a damaged archive makes the readers raise
        raise DamagedFile(f"{path} is damaged or not a scenegraph file ({error}).") from error


def _read_members(archive: zipfile.ZipFile) -> tuple[dict[str, Any], list[np.ndarray]]:
    text = _member(archive, _HEADER)
    header, named = _parse(text)
    digest, arrays = hashlib.sha256(text), []
    for index in range(sum(name.endswith(".npy") for name in archive.namelist())):
        data = _member(archive, f"{index}.npy")
        digest.update(data)
        arrays.append(_parse_array(data))
    # Files of the first version have no digest; the archive's own checksums are all they have.
    if named is not None and _member(archive, _DIGEST) != digest.hexdigest().encode():
        raise ValueError("its checksum is wrong")
    return header, arrays


def _member(archive: zipfile.ZipFile, name: str) -> bytes:
    # A member that is stored as it is cannot be larger than the file: no decompression bombs.
    if archive.getinfo(name).compress_type != zipfile.ZIP_STORED:
        raise ValueError(f"{name} is compressed, as no scenegraph file is")
    return archive.read(name)


def _parse(text: bytes) -> tuple[dict[str, Any], str | None]:
    header = json.loads(text)
    if not isinstance(header, dict):
        raise ValueError("its header is not an object")
    return header, header.pop("digest", None)


def _parse_array(data: bytes) -> np.ndarray:
    # The size comes from the bytes that are there, never from what the header claims.
    file = io.BytesIO(data)
    if np.lib.format.read_magic(file) != (1, 0):
        raise ValueError("an array is not in numpy's format 1.0")
    shape, by_columns, dtype = np.lib.format.read_array_header_1_0(file)
    if dtype.hasobject:
        raise ValueError("an array holds objects, as no scenegraph file does")
    flat = np.frombuffer(data, dtype, offset=file.tell())
    if flat.size != math.prod(shape):
        raise ValueError(f"an array of shape {shape} has {flat.size} numbers")
    return flat.reshape(shape, order="F" if by_columns else "C")
