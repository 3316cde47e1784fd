"""MTL files: the materials of OBJ files."""

import pathlib

import numpy as np

from ..io import decode_picture, FileError
from ._gltf_buffers import path_inside, read_beside
from ._model import ModelMaterial, ModelTexture


# Options of a texture, and the largest number of words after each.
_OPTIONS = {"-s": 3, "-o": 3, "-t": 3, "-mm": 2, "-blendu": 1, "-blendv": 1, "-clamp": 1}
_OPTIONS |= {"-bm": 1, "-boost": 1, "-texres": 1, "-imfchan": 1, "-type": 1, "-cc": 1}
# A picture has at most so many texels, and so many for each of its bytes.
_AT_LEAST, _TIMES = 2**25, 64
_LEFT_OUT = ("map_Ks", "map_Ke", "map_Bump", "map_bump", "bump", "norm", "map_d", "map_Pr")


class MaterialLibrary:
    """The materials of the MTL files that an OBJ file names."""

    def __init__(self, path: pathlib.Path):
        self.path, self.notes = path, list[str]()
        self.materials: list[ModelMaterial] = []
        self.numbers: dict[str, int] = {}
        self._pictures: dict[pathlib.Path, np.ndarray | None] = {}

    def read(self, names: str) -> None:
        """Reads the files of one line; of a missing file, it makes a note."""
        folder = self.path.parent
        whole = path_inside(folder, names, f"{self.path}: mtllib")
        for name in [names] if whole.is_file() else names.split():
            path = path_inside(folder, name, f"{self.path}: mtllib")
            if path.is_file():
                text = read_beside(path, f"{self.path}: mtllib").decode("utf-8", "replace")
                self._parse(text, path)
            else:
                self.notes.append(f"there is no file {name[:60]!r} of materials")

    def _parse(self, text: str, path: pathlib.Path) -> None:
        for number, line in enumerate(text.splitlines(), 1):
            words = line.split("#", 1)[0].split()
            if words[:1] == ["newmtl"]:
                name = " ".join(words[1:])
                self.numbers[name] = len(self.materials)
                # A diffuse surface, unless the file says otherwise.
                self.materials.append(ModelMaterial(name))
            elif words and self.materials:
                where = f"{path}, line {number}"
                changes = self._change(self.materials[-1], words[0], words[1:], where)
                self.materials[-1] = self.materials[-1]._replace(**changes)

    def _change(self, material: ModelMaterial, kind: str, words: list[str], where: str) -> dict:
        """Returns the fields of a material that a line changes."""
        color = material.base_color
        if kind == "Kd":
            rgb = np.clip(_numbers(words, 3, where), 0, 1)
            return {} if material.base_texture else {"base_color": np.append(rgb, color[3])}
        if kind in ("d", "Tr"):
            number = float(np.clip(_numbers(words[-1:], 1, where)[0], 0, 1))
            opacity = number if kind == "d" else 1 - number
            mode = "BLEND" if opacity < 1 else "OPAQUE"
            return {"base_color": np.append(color[:3], opacity), "alpha_mode": mode}
        if kind == "Ke":
            return {"emission": np.maximum(_numbers(words, 3, where), 0)}
        if kind in _SCALARS:
            field, convert = _SCALARS[kind]
            return {field: convert(float(_numbers(words, 1, where)[0]))}
        if kind == "map_Kd":
            texture = self._texture(words, where)
            white = np.append(np.ones(3), color[3])
            return {"base_texture": texture, "base_color": white} if texture else {}
        if kind in _LEFT_OUT:
            self.notes.append(f"{kind} of the material {material.name!r}")
        return {}

    def _texture(self, words: list[str], where: str) -> ModelTexture | None:
        wrap = "repeat"
        while words and words[0] in _OPTIONS:
            option, *words = words
            if option == "-clamp" and words[:1] == ["on"]:
                wrap = "clamp"
            elif option in ("-s", "-o", "-t"):
                self.notes.append(f"{where}: the option {option}")
            for _ in range(_OPTIONS[option]):
                words = (
                    words[1:] if words and (option[1:] in _NAMED or _is_number(words[0])) else words
                )
        name = " ".join(words)
        path = path_inside(self.path.parent, name, f"{where}: the texture")
        if path not in self._pictures:
            self._pictures[path] = self._picture(path) if path.is_file() else None
        texels = self._pictures[path]
        if texels is None:
            self.notes.append(f"{where}: there is no picture {name[:60]!r}")
            return None
        return ModelTexture(texels, (wrap, wrap), name=path.name)

    def _picture(self, path: pathlib.Path) -> np.ndarray:
        data = read_beside(path, "the texture")
        return decode_picture(data, str(path), most=_AT_LEAST + _TIMES * len(data))


_NAMED = ("blendu", "blendv", "clamp", "imfchan", "type", "cc")
_SCALARS = {
    # Blinn's exponent n of a lobe as wide as that of roughness r: n = 2 / r^4 - 2.
    "Ns": ("roughness", lambda n: (2 / (max(n, 0.0) + 2)) ** 0.25),
    "Pr": ("roughness", lambda x: min(max(x, 0.0), 1.0)),
    "Pm": ("metallic", lambda x: min(max(x, 0.0), 1.0)),
}


def _numbers(words: list[str], count: int, where: str) -> np.ndarray:
    """Returns finite numbers; one stands for all."""
    try:
        numbers = np.array([float(word) for word in words[:count]])
    except ValueError:
        numbers = np.full(1, np.nan)
    if len(numbers) not in (1, count) or not np.all(np.isfinite(numbers)):
        raise FileError(
            f"{where} must have {count} finite numbers; it has {' '.join(words)[:60]!r}."
        )
    return np.resize(numbers, count)


def _is_number(word: str) -> bool:
    try:
        return np.isfinite(float(word))
    except ValueError:
        return False
