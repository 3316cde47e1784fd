"""The lists of a glTF file that is being made; equal things are written once."""

import hashlib
import json
from typing import Any

import numpy as np

from ..io import encode_png


_TYPES = {1: "SCALAR", 2: "VEC2", 3: "VEC3", 4: "VEC4"}
_COMPONENTS = {"float32": 5126, "uint32": 5125, "uint16": 5123}
_VERTICES, _INDICES = 34962, 34963
_REPEAT, _CLAMP, _MIRROR = 10497, 33071, 33648


class GlbContent:
    """JSON and bytes of a file."""

    def __init__(self):
        self.lists: dict[str, list[Any]] = {}
        self.binary = bytearray()
        self.extensions: set[str] = set()
        self._known: dict[tuple[str, str], int] = {}

    def add(self, name: str, value: dict[str, Any], *, shared: bool = True) -> int:
        """Adds an entry to a list, and returns its index; of an equal one, if it is shared."""
        key = name, json.dumps(value, sort_keys=True)
        if not shared or key not in self._known:
            entries = self.lists.setdefault(name, [])
            self._known[key] = len(entries)
            entries.append(value)
        return self._known[key]

    def view(self, data: bytes, **fields: int) -> int:
        """Adds bytes at a multiple of four."""
        key = f"bytes {sorted(fields.items())}", hashlib.sha256(data).hexdigest()
        if key not in self._known:
            self.binary += b"\0" * (-len(self.binary) % 4)
            view = {"buffer": 0, "byteOffset": len(self.binary), "byteLength": len(data)}
            self.binary += data
            self._known[key] = self.add("bufferViews", view | fields, shared=False)
        return self._known[key]

    def array(self, array: np.ndarray, *, bounds: bool = False) -> int:
        """Adds an attribute of vertices, `n k`, as single precision."""
        array = np.ascontiguousarray(array, np.float32)
        accessor = self._accessor(array, target=_VERTICES, byteStride=array.strides[0])
        if bounds:
            accessor |= {"min": array.min(axis=0).tolist(), "max": array.max(axis=0).tolist()}
        return self.add("accessors", accessor)

    def indices(self, faces: np.ndarray, vertices: int) -> int:
        """Adds the corners of triangles."""
        dtype = np.uint16 if vertices < 2**16 - 1 else np.uint32
        flat = np.ascontiguousarray(faces.reshape(-1, 1), dtype)
        return self.add("accessors", self._accessor(flat, target=_INDICES))

    def _accessor(self, array: np.ndarray, **fields: int) -> dict[str, Any]:
        return {
            "bufferView": self.view(array.tobytes(), **fields),
            "componentType": _COMPONENTS[array.dtype.name],
            "count": len(array),
            "type": _TYPES[array.shape[1]],
        }

    def texture(
        self, texels: np.ndarray, repeat: tuple[bool, bool], mirror: tuple[bool, bool]
    ) -> int:
        """Adds a picture, `height width 3` of bytes."""
        image = {"bufferView": self.view(encode_png(texels)), "mimeType": "image/png"}
        wraps = [
            (_MIRROR if turned else _REPEAT) if tiled else _CLAMP
            for tiled, turned in zip(repeat, mirror, strict=True)
        ]
        sampler = {"wrapS": wraps[0], "wrapT": wraps[1], "magFilter": 9729, "minFilter": 9987}
        source, sampling = self.add("images", image), self.add("samplers", sampler)
        return self.add("textures", {"source": source, "sampler": sampling})

    def light(self, light: dict[str, Any]) -> dict[str, Any]:
        """Adds a light, and returns the extension of its node."""
        self.extensions.add("KHR_lights_punctual")
        return {"KHR_lights_punctual": {"light": self.add("lights", light, shared=False)}}

    def json(self, scene: dict[str, Any]) -> dict[str, Any]:
        """Returns the whole, with one scene."""
        lists = {name: x for name, x in self.lists.items() if name != "lights"}
        content = {"asset": {"version": "2.0", "generator": "scenegraph"}, "scene": 0, **lists}
        content["scenes"] = [scene]
        if self.binary:
            content["buffers"] = [{"byteLength": len(self.binary) + -len(self.binary) % 4}]
        if self.extensions:
            content["extensionsUsed"] = sorted(self.extensions)
        if "lights" in self.lists:
            content["extensions"] = {"KHR_lights_punctual": {"lights": self.lists["lights"]}}
        return content
