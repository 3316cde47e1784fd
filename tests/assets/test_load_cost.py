"""What loading costs: time that grows with the file alone, and memory for one copy of a picture."""

import json
import pathlib
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import scenegraph as sg
from scenegraph.io import encode_png
from support.model_files import Binary, pack_glb, QUAD, TRIANGLE


def write_obj(path: pathlib.Path, objects: int) -> None:
    corners = "v 0 0 0\nv 1 0 0\nv 0 1 0\nf -3 -2 -1\n"
    path.write_text("".join(f"o thing{i}\nusemtl m{i % 5}\n{corners}" for i in range(objects)))


def write_unlike(path: pathlib.Path, objects: int) -> None:
    """Writes objects of other faces, places and materials each."""
    rng, lines, count = np.random.default_rng(0), ["mtllib a.mtl\n"], 0
    for i in range(objects):
        corners = rng.normal(size=(3 + i % 5, 3))
        lines.append(f"o thing{i}\nusemtl m{i}\n")
        lines += [f"v {x:.6f} {y:.6f} {z:.6f}\n" for x, y, z in corners]
        lines += [f"f {count + 1} {count + j} {count + j + 1}\n" for j in range(2, len(corners))]
        count += len(corners)
    path.write_text("".join(lines))
    materials = (f"newmtl m{i}\nKd {i / objects} 0.5 0.5\nNs {i}\n" for i in range(objects))
    path.with_suffix(".mtl").write_text("".join(materials))


def write_faces(path: pathlib.Path, faces: int) -> None:
    """Writes a strip of triangles."""
    lines = [f"v {i} {i % 2} {(i * i) % 7}" for i in range(faces + 2)]
    lines += [f"f {i + 1} {i + 2} {i + 3}" for i in range(faces)]
    path.write_text("\n".join(lines))


def glb(binary: Binary, **parts: Any) -> bytes:
    content = {
        "asset": {"version": "2.0"},
        "buffers": [{"byteLength": len(binary.data)}],
        "bufferViews": binary.views,
        "accessors": binary.accessors,
    }
    return pack_glb(content | parts, binary.data)


def write_nodes(path: pathlib.Path, nodes: int) -> None:
    """Writes nodes with a mesh and a place of their own."""
    binary = Binary()
    places = [binary.array(TRIANGLE + i, "VEC3", 5126) for i in range(nodes)]
    meshes = [{"primitives": [{"attributes": {"POSITION": place}}]} for place in places]
    own = [{"mesh": i, "translation": [i, 0, 0], "scale": [2, 2, 2]} for i in range(nodes)]
    path.write_bytes(glb(binary, meshes=meshes, nodes=own))


def cpu_seconds(path: pathlib.Path) -> float:
    """Returns the least seconds of CPU of some calls."""
    found = []
    for _ in range(4):
        begin = time.process_time()
        sg.load_scene(path)
        found.append(time.process_time() - begin)
    return min(found)


@pytest.mark.filterwarnings("ignore:load_scene")
@pytest.mark.parametrize(
    ("name", "write", "count", "most"),
    [
        # Milliseconds for each: three to five times as many as it took when this was written.
        ("a.obj", write_obj, 400, 0.8),
        ("a.obj", write_unlike, 200, 1.2),
        ("a.glb", write_nodes, 100, 3.0),
        ("a.obj", write_faces, 8000, 0.02),
    ],
    ids=["objects", "unlike", "nodes", "faces"],
)
def test_time_grows_with_the_file_alone(
    tmp_path, name: str, write: Callable, count: int, most: float
):
    seconds = []
    for number in (count, 4 * count):
        write(tmp_path / name, number)
        seconds.append(cpu_seconds(tmp_path / name))
    # Four times as much; sixteen times, if each one's work grew with the number of all.
    assert seconds[1] < 8 * seconds[0]
    assert seconds[1] < 4 * count * most / 1000


LOAD = """
import json, sys
import jax, PIL.Image
import scenegraph as sg

def most_memory():
    lines = open("/proc/self/status").read().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))

small, large = sys.argv[1:]
sg.load_scene(small)
decoded, opened = [], PIL.Image.open
PIL.Image.open = lambda *args, **kwargs: decoded.append(1) or opened(*args, **kwargs)
before = most_memory()
scene = sg.load_scene(large)
grown = most_memory() - before
arrays = {id(x): x.nbytes for x in jax.tree.leaves(scene)}
print(json.dumps({"grown": grown, "kept": sum(arrays.values()), "decoded": len(decoded)}))
"""


def write_picture(path: pathlib.Path, size: int) -> None:
    """Writes a square with one picture in all five slots of its material."""
    binary = Binary()
    attributes = {
        "POSITION": binary.array(QUAD, "VEC3", 5126),
        "TEXCOORD_0": binary.array(QUAD[:, :2], "VEC2", 5126),
    }
    x, y = np.meshgrid(np.arange(size), np.arange(size))
    view = binary.view(encode_png(np.stack([x, y, x ^ y], axis=-1).astype(np.uint8)))
    use = {"index": 0}
    material = {
        "pbrMetallicRoughness": {"baseColorTexture": use, "metallicRoughnessTexture": use},
        **{f"{name}Texture": use for name in ("normal", "occlusion", "emissive")},
        "emissiveFactor": [0.5, 1, 1],
    }
    data = glb(
        binary,
        images=[{"bufferView": view, "mimeType": "image/png"}],
        textures=[{"source": 0}],
        materials=[material],
        meshes=[{"primitives": [{"attributes": attributes, "material": 0, "mode": 6}]}],
        nodes=[{"mesh": 0}],
    )
    path.write_bytes(data)


@pytest.mark.skipif(not pathlib.Path("/proc/self/status").exists(), reason="needs Linux")
def test_a_picture_in_five_slots_is_decoded_once(tmp_path):
    paths = tmp_path / "small.glb", tmp_path / "large.glb"
    for path, size in zip(paths, (8, 2048), strict=True):
        write_picture(path, size)
    command = [sys.executable, "-c", LOAD, *map(str, paths)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert not done.returncode, done.stderr
    found = json.loads(done.stdout)
    assert found["decoded"] == 1
    # Single precision: colour, normals and emission have three channels, the others one each.
    copy = 2048**2 * 4
    assert 12 * copy <= found["kept"] < 13 * copy
    # Beside what the scene keeps, a few copies in bytes at most, which are a quarter as large.
    assert found["grown"] < found["kept"] + 3 * copy
