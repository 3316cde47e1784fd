"""The bytes of a glTF file: the container, buffers, views, and the arrays in them."""

import base64
import binascii
import json
import os
import pathlib
import struct
import urllib.parse
from typing import Any, NamedTuple

import numpy as np

from ..io import DamagedFile, FileError, read_bytes, replace_file
from ._beside import decode_text, path_inside, read_beside
from ._fields import Fields


_MAGIC, _JSON, _BIN = 0x46546C67, 0x4E4F534A, 0x004E4942
_TYPES = {5120: "i1", 5121: "u1", 5122: "<i2", 5123: "<u2", 5125: "<u4", 5126: "<f4"}
_COUNTS = {"SCALAR": 1, "VEC2": 2, "VEC3": 3, "VEC4": 4, "MAT2": 4, "MAT3": 9, "MAT4": 16}
# Arrays may share bytes, and become longer numbers: all of them together are at most this many
# times as long as the file, or this many bytes.
_TIMES, _AT_LEAST = 32, 2**24
_FROM_SAFE = str.maketrans("-_", "+/")
_PACKED = {"EXT_meshopt_compression", "KHR_meshopt_compression"}


class Container(NamedTuple):
    """The JSON of a file, and the binary part of a .glb."""

    content: Any
    binary: memoryview | None
    beyond: int  # bytes after the end


def read_container(path: pathlib.Path) -> Container:
    """Reads a .glb or .gltf file."""
    data = read_bytes(path)
    if data[:4] != b"glTF":
        if path.suffix.lower() == ".glb":
            raise DamagedFile(f"{path} is not a GLB file: it does not begin with 'glTF'.")
        return Container(_parse(data, path), None, 0)
    chunks, beyond = _chunks(data, path)
    if not chunks or chunks[0][0] != _JSON:
        raise DamagedFile(f"{path} is damaged: its first chunk is not JSON.")
    rest = [chunk for kind, chunk in chunks[1:] if kind == _BIN]
    return Container(_parse(bytes(chunks[0][1]), path), rest[0] if rest else None, beyond)


def _chunks(data: bytes, path: pathlib.Path) -> tuple[list[tuple[int, memoryview]], int]:
    """Returns the chunks, and the number of bytes after the last."""
    if len(data) < 12:
        raise DamagedFile(f"{path} is cut: it ends within its header.")
    _, version, length = struct.unpack_from("<III", data)
    if version != 2:
        raise FileError(
            f"{path} is glTF {version}: a GLB file of version {version}. Version 2 is read; write "
            "it again as glTF 2."
        )
    if length > len(data):
        raise DamagedFile(
            f"{path} is damaged: it says that it has {length} bytes, and has {len(data)}."
        )
    chunks, at, whole = [], 12, memoryview(data)
    while at + 8 <= length:
        size, kind = struct.unpack_from("<II", data, at)
        if at + 8 + size > length:
            raise DamagedFile(f"{path} is damaged: the chunk at byte {at} does not fit in it.")
        chunks.append((kind, whole[at + 8 : at + 8 + size]))
        at += 8 + size
    return chunks, len(data) - at


def _parse(data: bytes, path: pathlib.Path) -> Any:
    try:
        return json.loads(decode_text(data))
    except (ValueError, RecursionError) as error:
        raise DamagedFile(f"{path} is not glTF: its JSON is damaged ({error}).") from error


def write_container(path: str | os.PathLike, content: dict[str, Any], binary: bytes) -> None:
    """Writes a .glb file, all or nothing."""
    text = json.dumps(content, separators=(",", ":"), allow_nan=False).encode()
    chunks = [(_JSON, text + b" " * (-len(text) % 4))]
    if binary:
        chunks.append((_BIN, binary + b"\0" * (-len(binary) % 4)))
    body = b"".join(struct.pack("<II", len(data), kind) + data for kind, data in chunks)
    header = struct.pack("<III", _MAGIC, 2, 12 + len(body))
    replace_file(path, lambda file: file.write(header + body))


class Buffers:
    """Reads arrays and pictures; what does not fit in the bytes that are there is refused."""

    def __init__(self, path: pathlib.Path, top: Fields, binary: memoryview | None):
        self.path, self.binary = path, binary
        self.buffers, self.views = top.objects("buffers"), top.objects("bufferViews")
        self.accessors = top.objects("accessors")
        self._bytes: dict[int, memoryview] = {}
        self._arrays: dict[int, np.ndarray] = {}
        # Bytes of files, and of the arrays made of them.
        self._given, self._read = path.stat().st_size, 0

    def array(self, index: int, kinds: tuple[str, ...], *, copy: bool = True) -> np.ndarray:
        """Returns an accessor's numbers, `n k`: floating if they are or are normalised.

        Without a copy, they may be a part of the file's bytes, all of which are kept with them.
        """
        accessor = self.accessors[index]
        kind = accessor.text("type")
        if kind not in kinds:
            raise FileError(f"{accessor.at('type')} must be {' or '.join(kinds)}; it is {kind!r}.")
        if index not in self._arrays:
            self._arrays[index] = self._decode(accessor, _COUNTS[kind], copy)
        return self._arrays[index]

    def _decode(self, accessor: Fields, width: int, copy: bool) -> np.ndarray:
        count, dtype = accessor.whole("count", least=1), _dtype(accessor)
        view = accessor.index("bufferView", len(self.views), "bufferViews")
        if view is not None:
            self.view(view)  # so that its buffer counts
        self.spend(count * width * 4, accessor)
        if view is not None:
            offset = accessor.whole("byteOffset", 0)
            array = self._strided(view, offset, (count, width), dtype, accessor)
            array = array.copy() if copy else array
        else:
            array = np.zeros((count, width), dtype)
        if "sparse" in accessor:
            array = self._replace(array, accessor.object("sparse"))
        return _denormalised(array) if accessor.flag("normalized") else array

    def spend(self, size: int, of: Fields) -> None:
        """Counts the bytes of all arrays; few bytes may claim to be many arrays."""
        self._read += size
        if self._read > max(_TIMES * self._given, _AT_LEAST):
            raise FileError(f"{of.where}: the arrays are absurdly large for the file.")

    def _strided(
        self, view: int, offset: int, shape: tuple[int, int], dtype: np.dtype, of: Fields
    ) -> np.ndarray:
        """Returns rows of a view, which may lie between other data, in their place in it."""
        data, stride = self.view(view), self.views[view].whole("byteStride", 0)
        row = shape[1] * dtype.itemsize
        stride = stride or row
        if stride < row:
            raise FileError(f"{self.views[view].at('byteStride')} is {stride}, less than a row.")
        if offset + stride * (shape[0] - 1) + row > len(data):
            raise DamagedFile(
                f"{of.where} has {shape[0]} rows from byte {offset}, which do not fit in the "
                f"{len(data)} bytes of bufferViews[{view}]."
            )
        return np.ndarray(shape, dtype, data, offset, (stride, dtype.itemsize))

    def _replace(self, array: np.ndarray, sparse: Fields) -> np.ndarray:
        """Puts the rows of a sparse accessor in their places."""
        count = sparse.whole("count", least=1)
        at, values = sparse.object("indices"), sparse.object("values")
        where, what = (
            self._strided(
                _view_of(part, len(self.views)), part.whole("byteOffset", 0), shape, dtype, part
            )
            for part, shape, dtype in (
                (at, (count, 1), _dtype(at)),
                (values, (count, array.shape[1]), array.dtype),
            )
        )
        if where.dtype.kind != "u" or where.max() >= len(array):
            raise FileError(f"{at.where} must be indices of the accessor's {len(array)} rows.")
        array = array.copy()
        array[where[:, 0]] = what
        return array

    def view(self, index: int) -> memoryview:
        """Returns the bytes of a view."""
        view = self.views[index]
        self._check_compression(view)
        buffer = view.index("buffer", len(self.buffers), "buffers")
        if buffer is None:
            raise FileError(f"{view.where} has no buffer.")
        data = self._buffer(buffer)
        start, length = view.whole("byteOffset", 0), view.whole("byteLength", least=1)
        if start + length > len(data):
            raise DamagedFile(
                f"{view.where} ends at byte {start + length} of a buffer of {len(data)}."
            )
        return data[start : start + length]

    def _check_compression(self, view: Fields) -> None:
        """Refuses a view whose plain bytes are not in the file."""
        packed = sorted(set(view.object("extensions").value) & _PACKED)
        buffer = view.index("buffer", len(self.buffers), "buffers")
        if packed and buffer is not None:
            owner = self.buffers[buffer]
            own = owner.object("extensions")
            is_empty = any(name in own and own.object(name).flag("fallback") for name in _PACKED)
            if is_empty or ("uri" not in owner and (self.binary is None or buffer > 0)):
                raise FileError(
                    f"{view.where} is compressed with meshopt ({packed[0]}), which this library "
                    "does not read; write the file again without compression."
                )

    def _buffer(self, index: int) -> memoryview:
        if index not in self._bytes:
            buffer = self.buffers[index]
            if "uri" in buffer:
                data = memoryview(self.resource(buffer))
            elif self.binary is not None and index == 0:
                data = self.binary
            else:
                raise FileError(f"{buffer.where} has no uri, and there is no binary part.")
            length = buffer.whole("byteLength", least=1)
            if length > len(data):
                raise DamagedFile(
                    f"{buffer.where} says that it has {length} bytes; there are {len(data)}."
                )
            self._bytes[index] = data[:length]
            self._given += len(data) if "uri" in buffer else 0
        return self._bytes[index]

    def resource(self, of: Fields) -> bytes:
        """Returns the bytes of a `uri`: data in the text, or a file in the folder."""
        uri = of.text("uri")
        if uri.startswith("data:"):
            return _data_of(uri, of)
        path = path_inside(self.path.parent, urllib.parse.unquote(uri), of.at("uri"))
        return read_beside(path, of.at("uri"))


def _data_of(uri: str, of: Fields) -> bytes:
    head, _, text = uri.partition(",")
    if not head.rstrip().lower().endswith(";base64"):
        return urllib.parse.unquote_to_bytes(text)
    # Some programs break lines, leave out the padding, or write what is safe in addresses.
    plain = "".join(urllib.parse.unquote(text).split()).rstrip("=").translate(_FROM_SAFE)
    try:
        return base64.b64decode(plain + "=" * (-len(plain) % 4), validate=True)
    except (binascii.Error, ValueError) as error:
        raise DamagedFile(f"{of.at('uri')} holds damaged base64 ({error}).") from error


def _view_of(part: Fields, count: int) -> int:
    view = part.index("bufferView", count, "bufferViews")
    if view is None:
        raise FileError(f"{part.where} has no bufferView.")
    return view


def _dtype(accessor: Fields) -> np.dtype:
    code = accessor.whole("componentType")
    if code not in _TYPES:
        raise FileError(f"{accessor.at('componentType')} is {code}, which glTF does not have.")
    return np.dtype(_TYPES[code])


def _denormalised(array: np.ndarray) -> np.ndarray:
    """Maps integers to [0, 1], or [-1, 1] if they have a sign."""
    if array.dtype.kind == "f":
        return array
    # c / (2^(b-1) - 1) with a sign, by which the least integer would be below -1.
    top = np.float32(np.iinfo(array.dtype).max)
    return np.maximum(array.astype(np.float32) / top, -1)
