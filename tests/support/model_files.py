"""Small files of meshes, and damage to them."""

import json
import pathlib
import struct
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from scenegraph.io import encode_png, FileError


def pack_glb(content: dict[str, Any], binary: bytes = b"") -> bytes:
    """The bytes of a GLB, as the format's text has them."""
    text = json.dumps(content).encode()
    text += b" " * (-len(text) % 4)
    binary += b"\0" * (-len(binary) % 4)
    body = struct.pack("<II", len(text), 0x4E4F534A) + text
    body += struct.pack("<II", len(binary), 0x004E4942) + binary if binary else b""
    return struct.pack("<4sII", b"glTF", 2, 12 + len(body)) + body


def unpack_glb(data: bytes) -> tuple[dict[str, Any], bytes]:
    """The JSON and the binary part of a GLB."""
    size = struct.unpack_from("<I", data, 12)[0]
    return json.loads(data[20 : 20 + size]), data[28 + size :]


class Binary:
    """The buffer of a file that is being made by hand."""

    def __init__(self):
        self.data, self.views, self.accessors = b"", [], []

    def view(self, data: bytes, **fields) -> int:
        self.data += b"\0" * (-len(self.data) % 4)
        view = {"buffer": 0, "byteOffset": len(self.data), "byteLength": len(data), **fields}
        self.views.append(view)
        self.data += data
        return len(self.views) - 1

    def array(self, array: np.ndarray, kind: str, code: int, **fields) -> int:
        view = self.view(np.ascontiguousarray(array).tobytes())
        accessor = {"bufferView": view, "componentType": code, "count": len(array), "type": kind}
        self.accessors.append(accessor | fields)
        return len(self.accessors) - 1


TRIANGLE = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0]], np.float32)
QUAD = np.array([[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0]], np.float32)
TEXELS = np.arange(48, dtype=np.uint8).reshape(4, 4, 3) * 5


def everything() -> tuple[dict[str, Any], bytes]:
    """A file with a bit of all that is read."""
    binary = Binary()
    position = binary.array(QUAD, "VEC3", 5126)
    normal = binary.array(np.tile(np.float32([0, 0, 1]), (4, 1)), "VEC3", 5126)
    uv = binary.array(np.uint8(255 * QUAD[:, :2]), "VEC2", 5121, normalized=True)
    color = binary.array(np.full((4, 4), 0.5, np.float32), "VEC4", 5126)
    faces = binary.array(np.uint16([0, 1, 2, 0, 2, 3]), "SCALAR", 5123)
    strip = binary.array(np.uint8([0, 1, 3, 2]), "SCALAR", 5121)
    moved = binary.view(np.uint16([1, 2]).tobytes())
    to = binary.view(np.float32([[2, 0, 0], [2, 2, 0]]).tobytes())
    sparse = {
        "count": 2,
        "indices": {"bufferView": moved, "componentType": 5123},
        "values": {"bufferView": to},
    }
    binary.accessors.append({**binary.accessors[position], "sparse": sparse})
    image = binary.view(encode_png(TEXELS))
    attributes = {"POSITION": position, "NORMAL": normal, "TEXCOORD_0": uv, "COLOR_0": color}
    lamps = [
        {"type": "point", "color": [1, 0.5, 0.25], "intensity": 8},
        {"type": "spot", "spot": {"innerConeAngle": 0.2, "outerConeAngle": 0.4}, "name": "spot"},
        {"type": "directional"},
    ]
    content = {
        "asset": {"version": "2.0"},
        "extensionsUsed": ["KHR_lights_punctual"],
        "extensions": {"KHR_lights_punctual": {"lights": lamps}},
        "scene": 0,
        "scenes": [{"nodes": [0, 5]}],
        "nodes": [
            {"name": "table.1", "children": [1, 2, 3], "translation": [1, 2, 3]},
            {"name": "leg", "mesh": 0, "scale": [1, 2, 3], "rotation": [0, 0, 0.6, 0.8]},
            {"name": "leg", "mesh": 1, "matrix": [2, 0, 0, 0, 0, 2, 0, 0, 0, 0, 2, 0, 5, 6, 7, 1]},
            {"children": [4], "extensions": {"KHR_lights_punctual": {"light": 1}}},
            {"name": "lamp", "extensions": {"KHR_lights_punctual": {"light": 0}}},
            {"name": "eye", "camera": 0, "translation": [0, 0, 9], "children": [6, 7]},
            {"camera": 1},
            {"name": "sun", "extensions": {"KHR_lights_punctual": {"light": 2}}},
        ],
        "meshes": [
            {"primitives": [{"attributes": attributes, "indices": faces, "material": 0}]},
            {
                "name": "two",
                "primitives": [
                    {"attributes": {"POSITION": len(binary.accessors) - 1}, "indices": faces},
                    {"attributes": attributes, "indices": strip, "mode": 5, "material": 1},
                ],
            },
        ],
        "materials": [
            {
                "name": "painted",
                "pbrMetallicRoughness": {
                    "baseColorTexture": {"index": 0},
                    "baseColorFactor": [0.5, 1, 1, 0.5],
                    "metallicFactor": 0.25,
                    "roughnessFactor": 0.75,
                },
                "alphaMode": "BLEND",
            },
            {
                "name": "glow",
                "emissiveFactor": [1, 0, 0],
                "extensions": {"KHR_materials_unlit": {}},
            },
        ],
        "textures": [{"source": 0, "sampler": 0}],
        "samplers": [{"wrapS": 33071, "wrapT": 33071}],
        "images": [{"bufferView": image, "mimeType": "image/png"}],
        "cameras": [
            {"type": "perspective", "perspective": {"yfov": 0.8, "aspectRatio": 1.5, "znear": 0.1}},
            {
                "type": "orthographic",
                "orthographic": {"xmag": 2, "ymag": 1, "znear": 0.5, "zfar": 20},
            },
        ],
        "bufferViews": binary.views,
        "accessors": binary.accessors,
        "buffers": [{"byteLength": len(binary.data)}],
    }
    return content, binary.data


def write_everything(folder: pathlib.Path) -> pathlib.Path:
    path = folder / "everything.glb"
    path.write_bytes(pack_glb(*everything()))
    return path


# --- Damage


STRANGE = [
    -1,
    0,
    2**31,
    2**63,
    1e38,
    1e300,
    float("nan"),
    float("inf"),
    None,
    True,
    "",
    "x",
    [],
    {},
]


def damage(data: bytes, seed: int) -> bytes:
    """Alters a GLB: its bytes, its length, or a value of its JSON."""
    rng = np.random.default_rng(seed)
    kind = rng.integers(5)
    if kind == 0:
        return flip_bytes(data, rng, int(rng.integers(1, 20)))
    if kind == 1:  # A run of bytes is lost, with the length put right.
        start, size = sorted(rng.integers(12, len(data), 2))
        return fix_length(data[:start] + data[size:])
    if kind == 2:
        start = int(rng.integers(12, len(data)))
        return fix_length(data[:start] + rng.bytes(int(rng.integers(1, 64))) + data[start:])
    content, binary = unpack_glb(data)
    for _ in range(int(rng.integers(1, 4))):
        change_value(content, rng)
    if kind == 3:
        binary = flip_bytes(binary, rng, int(rng.integers(1, 20)))
    return pack_glb(content, binary)


def flip_bytes(data: bytes, rng: np.random.Generator, count: int) -> bytes:
    found = bytearray(data)
    for place in rng.integers(0, len(data), count):
        found[place] = rng.integers(256)
    return bytes(found)


def fix_length(data: bytes) -> bytes:
    return data[:8] + struct.pack("<I", len(data)) + data[12:]


def change_value(node: Any, rng: np.random.Generator) -> None:
    """Replaces a value somewhere below a list or an object, or takes it away."""
    while True:
        keys = list(node) if isinstance(node, dict) else list(range(len(node)))
        if not keys:
            return
        key = keys[rng.integers(len(keys))]
        below = node[key]
        if isinstance(below, dict | list) and below and rng.random() < 0.85:
            node = below
            continue
        if rng.random() < 0.2:
            del node[key]
        elif isinstance(below, int | float) and rng.random() < 0.4:
            node[key] = below + int(rng.integers(-3, 4))
        else:
            node[key] = STRANGE[rng.integers(len(STRANGE))]
        return


def check_damaged(folder: pathlib.Path, seeds: Iterable[int], read: Callable) -> None:
    """Reads a GLB with the damage of each seed: it is read, or refused with a `FileError`."""
    data = write_everything(folder).read_bytes()
    path = folder / "damaged.glb"
    for seed in seeds:
        path.write_bytes(damage(data, seed))
        try:
            read(path)
        except FileError:
            continue
        except BaseException as error:
            raise AssertionError(f"seed {seed}") from error
