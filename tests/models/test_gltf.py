"""glTF files: every kind of array, texture and node read right; the rest refused by name."""

import base64
import json
import math

import numpy as np
import pytest

from scenegraph.io import DamagedFile, FileError
from scenegraph.models import read_model
from support.helpers import assert_close
from support.model_files import (
    Binary,
    everything,
    pack_glb,
    QUAD,
    TEXELS,
    TRIANGLE,
    write_everything,
)


def read(tmp_path, content, binary=b""):
    path = tmp_path / "file.glb"
    path.write_bytes(pack_glb({"asset": {"version": "2.0"}, **content}, binary))
    return read_model(path)


def refused(tmp_path, *parts, content, binary=b"", kind=FileError):
    with pytest.raises(kind) as caught:
        read(tmp_path, content, binary)
    assert all(part in str(caught.value) for part in parts), caught.value


def one_part(tmp_path, attributes, binary, **primitive):
    part = {"attributes": attributes, **primitive}
    content = {
        "buffers": [{"byteLength": len(binary.data)}],
        "bufferViews": binary.views,
        "accessors": binary.accessors,
        "meshes": [{"primitives": [part]}],
        "nodes": [{"mesh": 0}],
    }
    model = read(tmp_path, content, binary.data)
    return model.meshes[0].parts[0], model


# --- Arrays


def test_everything(tmp_path):
    model = read_model(write_everything(tmp_path))
    assert [node.name for node in model.nodes[:5]] == ["table.1", "leg", "leg", "", "lamp"]
    assert model.roots == (0, 5) and model.nodes[0].children == (1, 2, 3)
    painted, plain, glow = [part for mesh in model.meshes for part in mesh.parts]
    assert painted.faces.tolist() == [[0, 1, 2], [0, 2, 3]]
    # Every second triangle of a strip is turned round.
    assert glow.faces.tolist() == [[0, 1, 3], [1, 2, 3]]
    np.testing.assert_array_equal(painted.vertices, QUAD)
    # In the file, v goes down.
    np.testing.assert_array_equal(painted.uv, [[0, 1], [1, 1], [1, 0], [0, 0]])
    # A sparse accessor puts rows in the place of others.
    np.testing.assert_array_equal(plain.vertices, [[0, 0, 0], [2, 0, 0], [2, 2, 0], [0, 1, 0]])
    assert plain.normals is None and not plain.smooth and painted.smooth
    material = model.materials[0]
    assert (material.metallic, material.roughness, material.alpha_mode) == (0.25, 0.75, "BLEND")
    np.testing.assert_array_equal(material.base_texture.texels, TEXELS)
    assert material.base_texture.wrap == ("clamp", "clamp") and model.materials[1].unlit


def test_matrices_and_quaternions(tmp_path):
    model = read_model(write_everything(tmp_path))
    leg = model.nodes[1].matrix
    # (0, 0, 0.6, 0.8) turns about z by 2 asin(0.6); x is then scaled by 1 and y by 2.
    angle = 2 * math.asin(0.6)
    assert_close(leg[:3, 0], [math.cos(angle), math.sin(angle), 0], 1e-12)
    assert_close(leg[:3, 1], [-2 * math.sin(angle), 2 * math.cos(angle), 0], 1e-12)
    # Matrices are in the file column by column.
    assert_close(model.nodes[2].matrix @ [1, 1, 1, 1], [7, 8, 9, 1], 1e-12)


def test_cameras_and_lights(tmp_path):
    model = read_model(write_everything(tmp_path))
    eye, flat = model.cameras
    assert (eye.height, eye.aspect, eye.near, eye.far) == (0.8, 1.5, 0.1, None)
    assert (flat.height, flat.aspect, flat.far) == (2, 2, 20)
    point, spot, sun = model.lights
    assert point.color.tolist() == [8, 4, 2] and (spot.inner, spot.outer) == (0.2, 0.4)
    assert sun.color.tolist() == [1, 1, 1]


@pytest.mark.parametrize(
    ("dtype", "code", "top"),
    [
        (np.int8, 5120, 127),
        (np.uint8, 5121, 255),
        (np.int16, 5122, 32767),
        (np.uint16, 5123, 65535),
    ],
)
def test_normalised_integers(tmp_path, dtype, code, top):
    binary = Binary()
    rows = np.array([[0, 0], [top, 0], [top, top]], dtype)
    uv = binary.array(rows, "VEC2", code, normalized=True)
    position = binary.array(TRIANGLE, "VEC3", 5126)
    part, _ = one_part(tmp_path, {"POSITION": position, "TEXCOORD_0": uv}, binary)
    assert_close(part.uv, [[0, 1], [1, 1], [1, 0]], 1e-7)


@pytest.mark.parametrize(("dtype", "code"), [(np.int8, 5120), (np.uint16, 5123)])
def test_quantised_positions(tmp_path, dtype, code):
    binary = Binary()
    position = binary.array(np.array([[0, 0, 0], [7, 0, 0], [0, 9, 1]], dtype), "VEC3", code)
    part, _ = one_part(tmp_path, {"POSITION": position}, binary)
    assert part.vertices.tolist() == [[0, 0, 0], [7, 0, 0], [0, 9, 1]]


def test_interleaved_views(tmp_path):
    rows = np.arange(24, dtype=np.float32).reshape(4, 6) ** 2
    binary = Binary()
    view = binary.view(rows.tobytes(), byteStride=24)
    entry = {"bufferView": view, "componentType": 5126, "count": 4, "type": "VEC3"}
    binary.accessors += [entry, {**entry, "byteOffset": 12}]
    part, _ = one_part(tmp_path, {"POSITION": 0, "NORMAL": 1}, binary, mode=6)
    np.testing.assert_array_equal(part.vertices, rows[:, :3])
    normals = rows[:, 3:] / np.linalg.norm(rows[:, 3:], axis=1, keepdims=True)
    assert_close(part.normals, normals, 1e-6)
    assert part.faces.tolist() == [[0, 1, 2], [0, 2, 3]]


def test_texture_transform_moves_coordinates(tmp_path):
    content, binary = everything()
    place = {"offset": [0.5, 0.25], "scale": [2, 4], "rotation": math.pi / 2}
    texture = {"index": 0, "extensions": {"KHR_texture_transform": place}}
    content["materials"][0]["pbrMetallicRoughness"]["baseColorTexture"] = texture
    uv = read(tmp_path, content, binary).meshes[0].parts[0].uv
    # In the file (u, v) becomes (4 v + 0.5, -2 u + 0.25), and is then turned round.
    assert_close(uv, [[0.5, 0.75], [0.5, 2.75], [4.5, 2.75], [4.5, 0.75]], 1e-5)


def test_vertices_of_other_parts_are_left_out(tmp_path):
    binary = Binary()
    rows = np.concatenate([np.random.default_rng(0).normal(size=(50, 3)), TRIANGLE])
    position = binary.array(np.float32(rows), "VEC3", 5126)
    faces = binary.array(np.uint8([50, 51, 52]), "SCALAR", 5121)
    part, _ = one_part(tmp_path, {"POSITION": position}, binary, indices=faces)
    np.testing.assert_array_equal(part.vertices, TRIANGLE)
    assert part.faces.tolist() == [[0, 1, 2]]


# --- Files beside the file


def test_a_folder_of_files(tmp_path):
    content, binary = everything()
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "a b.bin").write_bytes(binary)
    content["buffers"][0]["uri"] = "sub/a%20b.bin"
    path = tmp_path / "file.gltf"
    path.write_text(json.dumps(content))
    assert len(read_model(path).meshes) == 2


def test_data_in_the_text(tmp_path):
    content, binary = everything()
    text = base64.b64encode(binary).decode()
    content["buffers"][0]["uri"] = f"data:application/octet-stream;base64,{text}"
    path = tmp_path / "file.gltf"
    path.write_text(json.dumps(content))
    assert len(read_model(path).meshes) == 2


@pytest.mark.parametrize(
    "uri",
    ["../secret.bin", "..%2Fsecret.bin", "sub/../../secret.bin", "/etc/passwd", "..\\secret.bin"]
    + ["file:///etc/passwd", "http://example.com/a.bin", "C:/secret.bin", "link.bin"],
)
def test_nothing_outside_of_the_folder_is_read(tmp_path, uri):
    (tmp_path / "secret.bin").write_bytes(everything()[1])
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "link.bin").symlink_to("../secret.bin")
    path = folder / "file.glb"
    content, binary = everything()
    content["buffers"][0] = {"uri": uri, "byteLength": len(binary)}
    path.write_bytes(pack_glb(content, binary))
    with pytest.raises(FileError, match="not in the folder"):
        read_model(path)
    # Without a picture, the rest can be shown.
    content, binary = everything()
    content["images"][0] = {"uri": uri}
    path.write_bytes(pack_glb(content, binary))
    model = read_model(path)
    assert model.materials[0].base_texture is None
    assert any("images[0]: there is no picture" in note for note in model.notes)


def test_a_missing_picture_is_noted(tmp_path):
    content, binary = everything()
    content["images"][0] = {"uri": "gone.png"}
    model = read(tmp_path, content, binary)
    assert any("gone.png" in note for note in model.notes)
    assert model.materials[0].base_texture is None


# --- What is repaired, and counted


def test_repairs_are_counted(tmp_path):
    binary = Binary()
    rows = np.concatenate([QUAD, [[2, 0, 0], [3, 0, 0]]]).astype(np.float32)
    normals = np.tile(np.float32([0, 0, 2]), (6, 1))
    normals[1], normals[2] = 0, np.nan
    position = binary.array(rows, "VEC3", 5126)
    normal = binary.array(normals, "VEC3", 5126)
    faces = [0, 1, 2, 1, 2, 0, 2, 1, 0, 3, 3, 1, 0, 4, 5, 1, 2, 3, 0]
    indices = binary.array(np.uint32(faces), "SCALAR", 5125)
    attributes = {"POSITION": position, "NORMAL": normal}
    part, model = one_part(tmp_path, attributes, binary, indices=indices)
    assert part.faces.tolist() == [[0, 1, 2], [2, 1, 0], [1, 2, 3]]
    for note in (
        "2 x face without area",
        "1 x face that is there twice",
        "2 x normal",
        "1 x index",
    ):
        assert any(note in found for found in model.notes), model.notes
    assert_close(np.linalg.norm(part.normals, axis=1), np.ones(6), 1e-6)


def test_what_is_not_read_is_noted(tmp_path):
    content, binary = everything()
    content |= {"animations": [{}], "skins": [{}]}
    content["materials"][0]["extensions"] = {"KHR_materials_iridescence": {}}
    content["meshes"][1]["primitives"][0]["mode"] = 1
    notes = read(tmp_path, content, binary).notes
    for part in ("animation", "skin", "iridescence", "points or lines"):
        assert any(part in note for note in notes), notes


# --- What is refused


def changed(change):
    content, binary = everything()
    change(content)
    return content, binary


@pytest.mark.parametrize(
    ("change", "parts"),
    [
        (lambda c: c["asset"].update(version="1.0"), ["version 2"]),
        (lambda c: c.update(extensionsRequired=["KHR_draco_mesh_compression"]), ["draco"]),
        (lambda c: c["accessors"][0].update(count=5), ["accessors[0]", "5 rows"]),
        (lambda c: c["accessors"][0].update(count=2**60), ["accessors[0]", "large"]),
        (lambda c: c["accessors"][0].update(byteOffset=4), ["accessors[0]", "do not fit"]),
        (lambda c: c["accessors"][0].update(componentType=5124), ["componentType", "5124"]),
        (lambda c: c["accessors"][0].update(type="VEC2"), ["type", "VEC3", "VEC2"]),
        (lambda c: c["accessors"][3].update(count=3), ["COLOR_0", "3 rows for 4"]),
        (lambda c: c["bufferViews"][0].update(byteLength=10**9), ["bufferViews[0]", "ends at"]),
        (lambda c: c["bufferViews"][0].update(byteStride=4), ["byteStride", "less than a row"]),
        (lambda c: c["buffers"][0].update(byteLength=10**9), ["buffers[0]", "1000000000"]),
        (lambda c: c["nodes"][0].update(children=[99]), ["nodes[0].children[0]", "99"]),
        (lambda c: c["nodes"][4].update(children=[3]), ["two places"]),
        (lambda c: c["nodes"][0].update(translation=[1, 2]), ["nodes[0].translation", "3 numbers"]),
        (lambda c: c["nodes"][0].update(translation=[1, 2, float("nan")]), ["translation"]),
        (lambda c: c["nodes"][1].update(rotation=[0, 0, 0, 0]), ["rotation", "zero"]),
        (lambda c: c["nodes"][2].update(matrix=[1] * 16), ["matrix", "last row"]),
        (lambda c: c["nodes"][1].update(mesh=-1), ["nodes[1].mesh", "-1"]),
        (lambda c: c["meshes"][0]["primitives"][0].update(mode=9), ["mode", "9"]),
        (lambda c: c["cameras"][0]["perspective"].update(yfov=9), ["yfov", "9"]),
        (lambda c: c["cameras"][1]["orthographic"].update(zfar=0.1), ["zfar", "0.1"]),
        (lambda c: c["materials"][0].update(alphaMode="GLASS"), ["alphaMode", "GLASS"]),
        (lambda c: c["samplers"][0].update(wrapS=1), ["samplers[0]", "1"]),
        (lambda c: c.update(nodes={}), ["nodes must be an array"]),
        (lambda c: c.update(scene=3), ["scene must be an index of 1 scenes"]),
    ],
)
def test_refused(tmp_path, change, parts):
    content, binary = changed(change)
    refused(tmp_path, "file.glb", *parts, content=content, binary=binary)


def test_indices_out_of_range(tmp_path):
    binary = Binary()
    position = binary.array(TRIANGLE, "VEC3", 5126)
    indices = binary.array(np.uint8([0, 1, 2, 0, 1, 7]), "SCALAR", 5121)
    with pytest.raises(FileError, match=r"face 1 has the vertices \[0, 1, 7\]; there are 3"):
        one_part(tmp_path, {"POSITION": position}, binary, indices=indices)


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e30])
def test_vertices_that_are_no_places(tmp_path, value):
    rows = TRIANGLE.copy()
    rows[1, 2] = value
    binary = Binary()
    position = binary.array(rows, "VEC3", 5126)
    with pytest.raises(FileError, match="1 of 3 vertices .* the first is vertex 1"):
        one_part(tmp_path, {"POSITION": position}, binary)


def test_towers_of_nodes(tmp_path):
    tower = [{"children": [i + 1]} for i in range(5000)] + [{}]
    refused(tmp_path, "64 deep", content={"nodes": tower})


def test_arrays_that_share_bytes_are_bounded(tmp_path):
    """2,000 accessors of one view would be 2.4 GB."""
    size = 100_000
    accessor = {"bufferView": 0, "componentType": 5126, "count": size, "type": "VEC3"}
    content = {
        "buffers": [{"byteLength": 12 * size}],
        "bufferViews": [{"buffer": 0, "byteLength": 12 * size}],
        "accessors": [accessor] * 2000,
        "meshes": [{"primitives": [{"attributes": {"POSITION": i}} for i in range(2000)]}],
    }
    rows = np.random.default_rng(0).normal(size=(size, 3)).astype(np.float32)
    refused(tmp_path, "absurdly large", content=content, binary=rows.tobytes())


def test_a_header_that_lies(tmp_path):
    data = pack_glb(*everything())
    path = tmp_path / "file.glb"
    for length in (len(data) + 4, 2**32 - 1):
        path.write_bytes(data[:8] + length.to_bytes(4, "little") + data[12:])
        with pytest.raises(DamagedFile, match=f"says that it has {length} bytes"):
            read_model(path)


def test_other_endings_and_missing_files(tmp_path):
    with pytest.raises(FileError, match="must end in .glb"):
        read_model(tmp_path / "a.blend")
    with pytest.raises(FileError, match="there is no file"):
        read_model(tmp_path / "a.glb")


@pytest.mark.parametrize("extras", ["a text", 3, [1, 2], {"scenegraph": 1}, None])
def test_extras_of_others_mean_nothing(tmp_path, extras):
    content, binary = everything()
    for name in ("nodes", "cameras", "scenes", "materials"):
        for entry in content[name]:
            entry["extras"] = extras
    model = read(tmp_path, content, binary)
    assert model.cameras[0].size is None and model.background is None
