"""Model files of strangers: a picture, a note, or an error that names the file; nothing else."""

import base64
import contextlib
import itertools
import json
import math
import pathlib
import struct
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

import scenegraph as sg
from scenegraph.io import encode_png, FileError
from stress.damage import altered, no_longer_than
from support.model_files import everything, pack_glb, TEXELS, TRIANGLE


Text = Callable[[str], str]
Content = Callable[[dict[str, Any]], Any]

OBJ = """mtllib a.mtl
o square
v 0 0 0
v 1 0 0
v 1 1 0
v 0 1 0
vt 0 0
vt 1 0
vt 1 1
vt 0 1
vn 0 0 1
usemtl wood
f 1/1/1 2/2/1 3/3/1 4/4/1
o corner
usemtl glass
f -4 -3 -2
"""
MTL = "newmtl wood\nKd 1 0.5 0.25\nNs 20\nmap_Kd wood.png\nnewmtl glass\nd 0.5\n"
STL = """solid a
facet normal 0 0 1
outer loop
vertex 0 0 0
vertex 1 0 0
vertex 0 1 0
endloop
endfacet
endsolid a
"""
PLY = """ply
format ascii 1.0
comment TextureFile wood.png
element vertex 4
property float x
property float y
property float z
property uchar red
property uchar green
property uchar blue
element face 2
property list uchar int vertex_indices
property list uchar float texcoord
end_header
0 0 0 255 0 0
1 0 0 0 255 0
1 1 0 0 0 255
0 1 0 9 9 9
3 0 1 2 6 0 0 1 0 1 1
3 0 2 3 6 0 0 1 1 0 1
"""


def _put(old: str, new: str) -> Text:
    return lambda text: text.replace(old, new)


def _faces_first(text: str) -> str:
    return "".join(sorted(text.splitlines(keepends=True), key=lambda line: line[:2] != "f "))


def _without(begin: str) -> Text:
    return lambda text: "".join(
        line for line in text.splitlines(keepends=True) if not line.startswith(begin)
    )


ANY_TEXT: dict[str, Text] = {
    "another end of lines": _put("\n", "\r"),
    "spaces and tabs": lambda text: text.replace(" ", " \t ").replace("\n", "  \r\n\r\n "),
    "commas in numbers": _put("0.5", "0,5"),
    "a comma for every point": _put(".", ","),
    "no end": lambda text: text[: 2 * len(text) // 3],
    "nothing": lambda text: "",
    "capitals": str.upper,
    "bytes of zero": lambda text: text + "\0\0\0",
    "accents": lambda text: text.replace("a", "ä"),
    "NaN": lambda text: text.replace("1 0 0", "nan 0 0"),
    "infinity": lambda text: text.replace("1 0 0", "1e999 0 0"),
    "huge": lambda text: text.replace("1 0 0", "1e30 0 0"),
    "hexadecimal": lambda text: text.replace("1 0 0", "0x1 0 0"),
}
CHANGES: dict[str, dict[str, Text]] = {
    "a.obj": {
        "faces before their vertices": _faces_first,
        "no coordinates": _without("vt"),
        "no normals": _without("vn"),
        "no vertices": _without("v "),
        "no faces": _without("f "),
        "a texture's coordinates that are not there": _put("/4/", "/400/"),
        "index 0": _put("f 1/1/1", "f 0/0/0"),
        "an index beyond the last": _put("f -4", "f 99"),
        "an index beyond the first": _put("f -4", "f -99"),
        "an index of a comma": _put("f -4", "f -4,0"),
        "two corners": _put("f -4 -3 -2", "f -4 -3"),
        "lines and points": _put("f -4 -3 -2", "l 1 2\np 1\nf 1 2 3"),
        "continued lines": _put(" 2/2/1 ", " \\\n2/2/1 "),
        "a library of no file": _put("a.mtl", "C:\\models\\gone.mtl"),
        "a library outside": _put("a.mtl", "../../etc/passwd"),
        "many libraries": lambda text: "mtllib a.mtl a.mtl\n" * 99 + text,
        "a material that is not there": _put("usemtl wood", "usemtl oak"),
        "a material without a name": _put("usemtl wood", "usemtl"),
        "a polygon of one place": _put("f -4 -3 -2", "f" + " 1" * 500),
        "weights and colours": _put("v 0 0 0", "v 0 0 0 1 0.5 0.25 0"),
        "curves": _put("f -4 -3 -2", "cstype bezier\ncurv 0 1 1 2 3 4\nsurf 0 1 0 1 1 2 3 4"),
    },
    "a.mtl": {
        "Tr 1": _put("d 0.5", "Tr 1.000000"),
        "d 0": _put("d 0.5", "d 0"),
        "d of nothing": _put("d 0.5", "d"),
        "d of a halo": _put("d 0.5", "d -halo 0.5"),
        "Kd xyz": _put("Kd 1", "Kd xyz 1"),
        "Kd spectral": _put("Kd 1 0.5 0.25", "Kd spectral a.rfl 1"),
        "Kd beyond 1": _put("Kd 1", "Kd 255"),
        "Ns of nothing": _put("Ns 20", "Ns"),
        "Ns of NaN": _put("Ns 20", "Ns nan"),
        "a texture of another folder": _put("wood.png", "C:\\art\\wood.png"),
        "a texture outside": _put("wood.png", "../../wood.png"),
        "a texture that is not there": _put("wood.png", "oak.png"),
        "a texture of nothing": _put("wood.png", ""),
        "a texture that is no picture": _put("wood.png", "a.obj"),
        "options of a texture": _put("wood.png", "-s 1 1 1 -o 0 -clamp on -bm wood.png"),
        "no material": _without("newmtl"),
    },
    "a.stl": {
        "end solid": _put("endsolid", "end solid"),
        "no endsolid": _without("endsolid"),
        "no endfacet": _without("endfacet"),
        "two corners": _put("vertex 0 1 0\n", ""),
        "four corners": _put("vertex 0 1 0\n", "vertex 0 1 0\nvertex 1 1 0\n"),
        "all in one line": _put("\n", " "),
        "several solids": lambda text: 3 * text,
        "a name of words of the format": _put("solid a", "solid facet vertex 1"),
        "bytes after the end": lambda text: text + "and more",
    },
    "a.ply": {
        "bytes after the end": lambda text: text + "1 2 3\n",
        "no texture": _put("comment TextureFile wood.png\n", ""),
        "a texture that is not there": _put("wood.png", "oak.png"),
        "other colours": lambda text: text.replace("uchar red", "uchar diffuse_red"),
        "coordinates of two corners": _put("6 0 0 1 0 1 1", "4 0 0 1 0"),
        "an odd number of coordinates": _put("6 0 0 1 0 1 1", "5 0 0 1 0 1"),
        "points alone": lambda text: text.replace("element face 2", "element face 0"),
        "fewer rows": _put("vertex 4", "vertex 5"),
        "a count of many": _put("vertex 4", "vertex 99999999999"),
        "a negative count": _put("vertex 4", "vertex -4"),
        "an index beyond the last": _put("3 0 1 2", "3 0 1 9"),
        "an index below 0": _put("3 0 1 2", "3 0 1 -2"),
        "indices with points": _put("list uchar int", "list uchar float"),
        "a list of floats": _put("list uchar int", "list float int"),
        "a type of no name": _put("uchar red", "color red"),
        "an element of edges": _put("end_header", "element edge 1\nproperty int a\nend_header"),
        "no z": _put("property float z\n", ""),
        "another version": _put("ascii 1.0", "ascii 2.0"),
        "another format": _put("ascii", "binary_middle_endian"),
        "binary that is text": _put("ascii", "binary_little_endian"),
        "strips": lambda text: text.replace("element face 2", "element tristrips 2"),
    },
}  # fmt: skip


def _material(content: dict[str, Any]) -> dict[str, Any]:
    return content["materials"][0]


def _part(content: dict[str, Any]) -> dict[str, Any]:
    return content["meshes"][0]["primitives"][0]


def _draco(content: dict[str, Any]) -> None:
    _part(content)["extensions"] = {"KHR_draco_mesh_compression": {"bufferView": 0}}
    del content["accessors"][0]["bufferView"]


def _meshopt(content: dict[str, Any]) -> None:
    content["buffers"].append({"byteLength": 1000})
    content["bufferViews"][0] |= {"extensions": {"EXT_meshopt_compression": {"buffer": 0}}}
    content["bufferViews"][0]["buffer"] = 1


def _tower(content: dict[str, Any]) -> None:
    first = len(content["nodes"])
    content["nodes"] += [{"children": [first + i + 1]} for i in range(999)] + [{}]
    content["scenes"][0]["nodes"].append(first)


def _ktx(content: dict[str, Any]) -> None:
    data = base64.b64encode(b"\xabKTX 20\xbb\r\n\x1a\n" + bytes(60)).decode()
    content["images"][0] = {"uri": f"data:image/ktx2;base64,{data}"}


def _copies(content: dict[str, Any]) -> None:
    extension = {"EXT_mesh_gpu_instancing": {"attributes": {"TRANSLATION": 0, "_COLOR": 3}}}
    content["nodes"][1]["extensions"] = extension


GLTF: dict[str, Content] = {
    "glTF 1": lambda c: c["asset"].update(version="1.0"),
    "objects of glTF 1": lambda c: c.update(meshes={"a": {}}),
    "no version": lambda c: c.update(asset={}),
    "another required extension": lambda c: c.update(extensionsRequired=["EXT_other"]),
    "Draco": _draco,
    "meshopt": _meshopt,
    "KTX2": _ktx,
    "Basis alone": lambda c: c["textures"].__setitem__(
        0, {"extensions": {"KHR_texture_basisu": {"source": 0}}}
    ),
    "a texture beyond the last": lambda c: _material(c).update(normalTexture={"index": 99}),
    "a texture below 0": lambda c: _material(c).update(normalTexture={"index": -1}),
    "a texture of a word": lambda c: _material(c).update(normalTexture={"index": "x"}),
    "a texture of a fraction": lambda c: _material(c).update(normalTexture={"index": 0.5}),
    "a picture beyond the last": lambda c: c["textures"][0].update(source=99),
    "a picture that is not there": lambda c: c["images"].__setitem__(0, {"uri": "gone.png"}),
    "a picture outside": lambda c: c["images"].__setitem__(0, {"uri": "../../a.png"}),
    "a picture of the net": lambda c: c["images"].__setitem__(0, {"uri": "http://a.b/c.png"}),
    "a material beyond the last": lambda c: _part(c).update(material=99),
    "a second parent outside of the scene": lambda c: c["nodes"].append({"children": [0]}),
    "a second parent": lambda c: c["nodes"][4].update(children=[0]),
    "a circle": lambda c: c["nodes"][1].update(children=[0]),
    "a child of itself": lambda c: c["nodes"][1].update(children=[1]),
    "a tower of nodes": _tower,
    "a scale of zero": lambda c: c["nodes"][1].update(scale=[0, 0, 0]),
    "a needle": lambda c: c["nodes"][1].update(scale=[1, 1, 1e-9]),
    "a scale of 1e7": lambda c: c["nodes"][1].update(scale=[0.15, 0.15, 1e7]),
    "a rotation of zero": lambda c: c["nodes"][1].update(rotation=[0, 0, 0, 0]),
    "a matrix of perspective": lambda c: c["nodes"][1].update(matrix=[*range(16)]),
    "a shift without an end": lambda c: c["nodes"][1].update(translation=[math.inf, 0, 0]),
    "a shift of words": lambda c: c["nodes"][1].update(translation=["a", 0, 0]),
    "copies": _copies,
    "points": lambda c: _part(c).update(mode=0),
    "another mode": lambda c: _part(c).update(mode=9),
    "no places": lambda c: _part(c)["attributes"].pop("POSITION"),
    "places of scalars": lambda c: c["accessors"][0].update(type="SCALAR"),
    "another type of numbers": lambda c: c["accessors"][0].update(componentType=5124),
    "rows beyond the end": lambda c: c["accessors"][0].update(count=10**9),
    "no rows": lambda c: c["accessors"][0].update(count=0),
    "a stride of one": lambda c: c["bufferViews"][0].update(byteStride=1),
    "a view beyond the end": lambda c: c["bufferViews"][0].update(byteLength=10**9),
    "a buffer of more": lambda c: c["buffers"][0].update(byteLength=10**9),
    "a camera of nothing": lambda c: c.update(cameras=[{}] * len(c.get("cameras", [0]))),
    "extensions everywhere": lambda c: [
        x.update(extensions={"EXT_x": {}}) for x in (c["nodes"][0], _part(c), _material(c))
    ],
    "null for a name": lambda c: c["nodes"][0].update(name=None),
    "null for a mesh": lambda c: c["nodes"][0].update(mesh=None),
    "a list for a mesh": lambda c: c["meshes"].__setitem__(0, []),
    "no scenes": lambda c: c.pop("scenes"),
    "a scene beyond the last": lambda c: c.update(scene=9),
    "true for a number": lambda c: c["nodes"][0].update(mesh=True),
}
# What others write around the bytes.
BYTES: dict[str, Callable[[bytes], bytes]] = {
    "UTF-16": lambda data: data.decode("latin-1").encode("utf-16"),
    "UTF-16 without a mark": lambda data: data.decode("latin-1").encode("utf-16-le"),
    "a mark of UTF-8": lambda data: b"\xef\xbb\xbf" + data,
    "bytes after the end": lambda data: data + b"\0\0\r\n",
    "half of it": lambda data: data[: len(data) // 2],
}
BASE64: dict[str, Text] = {
    "no padding": lambda text: text.rstrip("="),
    "lines": lambda text: "\n".join(text[i : i + 76] for i in range(0, len(text), 76)),
    "safe": lambda text: text.replace("+", "-").replace("/", "_"),
    "cut": lambda text: text[:-5],
}
TEXTS = {"a.obj": OBJ, "a.mtl": MTL, "a.stl": STL, "a.ply": PLY}
FORMATS = "a.obj", "a.mtl", "a.stl", "binary.stl", "a.ply", "a.glb", "a.gltf"


def changes_of(name: str) -> list[str]:
    """Returns the names of the changes that a format has."""
    if name == "binary.stl":
        return list(BYTES)
    if name.endswith((".glb", ".gltf")):
        return [*GLTF, *BYTES, *(BASE64 if name == "a.gltf" else ())]
    return [*CHANGES[name], *ANY_TEXT, *BYTES]


def strange_bytes(name: str, changes: list[str]) -> bytes:
    """Returns a file with changes, one after the other."""
    if name == "binary.stl":
        facet = struct.pack("<12fH", 0, 0, 1, *TRIANGLE.reshape(-1), 0)
        data = bytes(80) + struct.pack("<I", 1) + facet
    elif name.endswith((".glb", ".gltf")):
        data = _strange_gltf(name, changes)
    else:
        text = TEXTS[name]
        for change in changes:
            text = (CHANGES[name] | ANY_TEXT).get(change, str)(text)
        data = text.encode()
    for change in changes:
        data = BYTES.get(change, bytes)(data)
    return data


def _strange_gltf(name: str, changes: list[str]) -> bytes:
    content, binary = everything()
    for change in changes:
        # What it changes may have gone by an earlier change.
        with contextlib.suppress(KeyError, TypeError, IndexError, AttributeError):
            GLTF.get(change, id)(content)
    if name == "a.glb":
        return pack_glb(content, binary)
    text = base64.b64encode(binary).decode()
    for change in changes:
        text = BASE64.get(change, str)(text)
    content["buffers"][0]["uri"] = f"data:application/octet-stream;base64,{text}"
    return json.dumps(content).encode()


def outcome(path: pathlib.Path, draw: bool = False) -> str:
    """What became of a file: `refused`, `noted`, `loaded`, or something that must not be."""
    with no_longer_than(60), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            scene = sg.load_scene(path)
        except FileError as error:
            is_named = any(name in str(error) for name in (path.name, "a.mtl"))
            return "refused" if is_named else f"does not name the file: {error}"
        except Exception as error:  # noqa: BLE001 - whatever it is, it is wrong
            return f"{type(error).__name__}: {error}"
        found = "noted" if caught else "loaded"
        if not all(np.all(np.isfinite(leaf)) for leaf in jax.tree.leaves(scene)):
            return "NUMBERS THAT ARE NOT FINITE"
        try:
            camera = sg.assets.frame_camera(scene, 8, 8)
            image = sg.render(sg.assets.add_lights(scene), camera) if draw else None
        except Exception as error:  # noqa: BLE001 - whatever it is, it is wrong
            return f"no picture: {type(error).__name__}: {error}"
    leaves = jax.tree.leaves(image)
    is_picture = all(np.all(np.isfinite(leaf)) for leaf in leaves)
    return found if is_picture else "A PICTURE THAT IS NOT FINITE"


def strange_models(examples: int, seconds: float = math.inf, draw: bool = False) -> dict[str, Any]:
    """Loads every change of every format, then so many with several changes and damage."""
    begin, rng, seen = time.perf_counter(), np.random.default_rng(0), Counter[str]()
    single = [(name, [change]) for name in FORMATS for change in changes_of(name)]
    several = (_several(rng) for _ in range(examples))
    with tempfile.TemporaryDirectory() as place:
        folder = pathlib.Path(place)
        (folder / "wood.png").write_bytes(encode_png(TEXELS))
        for number, (name, changes) in enumerate(itertools.chain(single, several)):
            if time.perf_counter() - begin > seconds:
                break
            (folder / "a.mtl").write_text(MTL)
            (folder / "a.obj").write_text(OBJ)
            data = strange_bytes(name, changes)
            if number >= len(single) and rng.random() < 0.3 and data:
                data = altered(data, rng)
            (folder / name).write_bytes(data)
            path = folder / ("a.obj" if name == "a.mtl" else name)
            found = outcome(path, draw and number < len(single))
            seen[found] += 1
            assert found in ("refused", "noted", "loaded"), f"{found} for {name}: {changes}"
    return {**seen, "seconds": round(time.perf_counter() - begin, 1)}


def _several(rng: np.random.Generator) -> tuple[str, list[str]]:
    """Chooses a format and two or three of its changes."""
    name = FORMATS[rng.integers(len(FORMATS))]
    return name, rng.choice(changes_of(name), rng.integers(2, 4)).tolist()
