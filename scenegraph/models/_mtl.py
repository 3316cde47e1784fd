"""MTL files: the materials of OBJ files."""

import pathlib
import re
from typing import NamedTuple

import numpy as np

from ..io import are_usable
from ._beside import decode_text, find_beside, read_beside
from ._fields import shown
from ._model import ModelMaterial, ModelTexture
from ._pictures import Pictures


# Options of a texture, and the largest number of words after each.
_OPTIONS = {"-s": 3, "-o": 3, "-t": 3, "-mm": 2, "-blendu": 1, "-blendv": 1, "-clamp": 1}
_OPTIONS |= {"-bm": 1, "-boost": 1, "-texres": 1, "-imfchan": 1, "-type": 1, "-cc": 1}
_NAMED = ("blendu", "blendv", "clamp", "imfchan", "type", "cc")
_LEFT_OUT = re.compile(r"map_.+|bump|norm|disp|decal|refl")
# Textures that are read, or say the same as another.
_READ = ("map_kd", "map_ka", "map_aat")
# A comment begins a line, or follows a space: names may have the mark in them.
COMMENT = re.compile(r"(?:^|\s)#.*")


class _Unreadable(ValueError):
    """A line without the numbers that it needs."""


class _Opacity(NamedTuple):
    """The opacity that a material's lines state."""

    opacity: float | None = None  # d
    transparency: float | None = None  # Tr


class MaterialLibrary:
    """The materials of the MTL files that an OBJ file names."""

    def __init__(self, path: pathlib.Path):
        self.path, self.pictures = path, Pictures()
        self.notes = self.pictures.notes
        self.materials: list[ModelMaterial] = []
        self.numbers: dict[str, int] = {}
        self._opacities: list[_Opacity] = []
        self._read: set[str | pathlib.Path] = set()  # names as they stand, and files

    def read(self, names: str) -> None:
        """Reads the files of one line, each once; of a missing file, it makes a note."""
        if names in self._read:
            return
        self._read.add(names)
        whole = find_beside(self.path.parent, names)
        for name in [names] if whole is not None else names.split():
            path = whole or find_beside(self.path.parent, name)
            if path is None:
                self.notes[
                    f"mtllib: there is no file {shown(name)} of materials in its folder"
                ] += 1
            elif path not in self._read:
                self._read.add(path)
                self._parse(decode_text(read_beside(path, f"{self.path}: mtllib")), path)

    def _parse(self, text: str, path: pathlib.Path) -> None:
        first = len(self.materials)
        for number, line in enumerate(text.splitlines(), 1):
            words = COMMENT.sub("", line).split()
            if words and words[0].lower() == "newmtl":
                name = " ".join(words[1:])
                self.numbers[name] = len(self.materials)
                # A diffuse surface, unless the file says otherwise.
                self.materials.append(ModelMaterial(name))
                self._opacities.append(_Opacity())
            elif words and len(self.materials) > first:
                self._take(words[0], words[1:], f"{path.name}, line {number}")
        # MeshLab writes the opacity itself as Tr.
        by_meshlab = "meshlab" in text[:1000].lower()
        for i in range(first, len(self.materials)):
            self._set_opacity(i, self._opacities[i], by_meshlab)

    def _take(self, kind: str, words: list[str], where: str) -> None:
        """Takes one line of the last material; of what it cannot read, it makes a note."""
        try:
            changes = self._change(self.materials[-1], kind.lower(), words, where)
        except _Unreadable as error:
            self.notes[
                f"{where}: {kind} of the material {shown(self.materials[-1].name)} {error}"
            ] += 1
            return
        self.materials[-1] = self.materials[-1]._replace(**changes)
        if _LEFT_OUT.fullmatch(kind.lower()) and kind.lower() not in _READ:
            self.notes[f"{kind} of the material {self.materials[-1].name!r}"] += 1

    def _change(self, material: ModelMaterial, kind: str, words: list[str], where: str) -> dict:
        """Returns the fields of a material that a line changes."""
        color = material.base_color
        if kind == "kd":
            rgb = np.clip(_numbers(words, 3), 0, 1)
            return {} if material.base_texture else {"base_color": np.append(rgb, color[3])}
        if kind in ("d", "tr"):
            field = "opacity" if kind == "d" else "transparency"
            number = float(np.clip(_numbers(words[-1:], 1)[0], 0, 1))
            self._opacities[-1] = self._opacities[-1]._replace(**{field: number})
        elif kind == "ke":
            return {"emission": np.maximum(_numbers(words, 3), 0)}
        elif kind in _SCALARS:
            field, convert = _SCALARS[kind]
            return {field: convert(float(_numbers(words, 1)[0]))}
        elif kind == "map_kd":
            texture = self._texture(words, where)
            white = np.append(np.ones(3), color[3])
            return {"base_texture": texture, "base_color": white} if texture else {}
        return {}

    def _set_opacity(self, index: int, said: _Opacity, by_meshlab: bool) -> None:
        opacity = said.opacity
        if opacity is None and said.transparency is not None:
            opacity = said.transparency if by_meshlab else 1 - said.transparency
        if opacity is not None:
            material = self.materials[index]
            self.materials[index] = material._replace(
                base_color=np.append(material.base_color[:3], opacity),
                alpha_mode="BLEND" if opacity < 1 else "OPAQUE",
            )

    def _texture(self, words: list[str], where: str) -> ModelTexture | None:
        wrap = "repeat"
        while words and words[0] in _OPTIONS:
            option, *words = words
            if option == "-clamp" and words[:1] == ["on"]:
                wrap = "clamp"
            elif option in ("-s", "-o", "-t"):
                self.notes[f"{where}: the option {option}"] += 1
            for _ in range(_OPTIONS[option]):
                words = (
                    words[1:] if words and (option[1:] in _NAMED or _is_number(words[0])) else words
                )
        name = " ".join(words)
        texels = self.pictures.beside(self.path.parent, name, where)
        if texels is None:
            return None
        return ModelTexture(texels, (wrap, wrap), name=name.replace("\\", "/").rsplit("/", 1)[-1])

    def show_some(self, used: set[int | None], notes: dict[str, int]) -> None:
        """Makes materials opaque, if all that are used would be wholly transparent."""
        hidden = [i for i in used if i is not None and self.materials[i].base_color[3] == 0]
        if not hidden or len(hidden) < len(used):
            return
        for i in hidden:
            color = np.append(self.materials[i].base_color[:3], 1.0)
            self.materials[i] = self.materials[i]._replace(base_color=color, alpha_mode="OPAQUE")
        what = "wholly transparent material, taken as opaque since nothing would be seen"
        notes[what] = notes.get(what, 0) + len(hidden)


_SCALARS = {
    # Blinn's exponent n of a lobe as wide as that of roughness r: n = 2 / r^4 - 2.
    "ns": ("roughness", lambda n: (2 / (max(n, 0.0) + 2)) ** 0.25),
    "pr": ("roughness", lambda x: min(max(x, 0.0), 1.0)),
    "pm": ("metallic", lambda x: min(max(x, 0.0), 1.0)),
}


def _numbers(words: list[str], count: int) -> np.ndarray:
    """Returns finite numbers; one stands for all."""
    try:
        numbers = np.array([float(word) for word in words[:count]])
    except ValueError:
        numbers = np.full(1, np.nan)
    if len(numbers) not in (1, count) or not are_usable(numbers):
        noun = "a finite number" if count == 1 else f"{count} finite numbers"
        raise _Unreadable(f"must have {noun}; it has {' '.join(words)[:60]!r}")
    return np.resize(numbers, count)


def _is_number(word: str) -> bool:
    try:
        return np.isfinite(float(word))
    except ValueError:
        return False
