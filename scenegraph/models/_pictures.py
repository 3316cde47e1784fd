"""The pictures that a file of meshes uses."""

import pathlib
from collections import Counter

import numpy as np

from ..io import decode_picture, FileError
from ._beside import find_beside, read_beside
from ._fields import shown


# Few bytes may claim to be a huge picture: all together have at most so many texels, and so many
# for each byte.
_AT_LEAST, _TIMES = 2**25, 64
# What files begin with that hold textures for graphics cards alone.
_CARD_FORMATS = {b"\xabKTX 20\xbb": "KTX2", b"\xabKTX 11\xbb": "KTX", b"sB": "Basis"}


class Pictures:
    """Reads pictures, each once; of those that cannot be read, it makes notes."""

    def __init__(self):
        self.notes = Counter[str]()
        self._free = _AT_LEAST
        self._files: dict[tuple[pathlib.Path, str], np.ndarray | None] = {}

    def decode(self, data: bytes, name: str) -> np.ndarray | None:
        """Returns the texels of a picture's bytes; `None` for what cannot be read, with a note."""
        for begin, kind in _CARD_FORMATS.items():
            if data.startswith(begin):
                self.notes[f"{name}: a picture of the kind {kind}, which is not read"] += 1
                return None
        self._free += _TIMES * len(data)
        try:
            texels = decode_picture(data, name, most=self._free)
        except FileError as error:
            if "too many" in str(error) or "too large" in str(error):
                raise
            self.notes[str(error).rstrip(".")] += 1
            return None
        self._free -= texels.shape[0] * texels.shape[1]
        return texels

    def beside(self, folder: pathlib.Path, name: str, where: str) -> np.ndarray | None:
        """Returns the texels of a file that a file names; `None`, with a note, for what is none."""
        key = folder, name
        if key not in self._files:
            path = find_beside(folder, name)
            if path is None:
                self.notes[f"{where}: there is no picture {shown(name)} in its folder"] += 1
            data = None if path is None else read_beside(path, where)
            self._files[key] = None if data is None else self.decode(data, str(path))
        return self._files[key]
