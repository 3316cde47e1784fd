import os
import pathlib

from ..io import FileError
from ._gltf import read_gltf
from ._model import Model
from ._obj import read_obj
from ._ply import read_ply
from ._stl import read_stl


_READERS = {
    ".glb": read_gltf,
    ".gltf": read_gltf,
    ".obj": read_obj,
    ".ply": read_ply,
    ".stl": read_stl,
}
MODEL_ENDINGS = tuple(_READERS)


def read_model(path: str | os.PathLike) -> Model:
    """Reads a file of meshes; the ending of its name gives the format."""
    ending = pathlib.Path(path).suffix.lower()
    if ending not in _READERS:
        raise FileError(f"{path} must end in {', '.join(MODEL_ENDINGS)}.")
    if not pathlib.Path(path).is_file():
        raise FileError(f"there is no file {path}.")
    return _READERS[ending](path)
