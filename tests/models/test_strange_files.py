"""Files as other programs write them: read as others read them, or refused for the true reason."""

import base64
import json
import struct

import numpy as np
import pytest

from scenegraph.io import encode_png, FileError
from scenegraph.models import read_model
from support.helpers import assert_close
from support.model_files import Binary, everything, pack_glb, TEXELS, TRIANGLE


CORNERS = "v 0 0 0\nv 1 0 0\nv 0 1 0\n"


def read(tmp_path, name: str, data: str | bytes):
    path = tmp_path / name
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return read_model(path)


def part_of(model):
    (mesh,) = model.meshes
    (part,) = mesh.parts
    return part


def says(model, *words: str) -> None:
    for word in words:
        assert any(word in note for note in model.notes), (word, model.notes)


def material_of(tmp_path, mtl: str, used: str = "m"):
    (tmp_path / "a.mtl").write_text(mtl)
    model = read(tmp_path, "a.obj", f"mtllib a.mtl\n{CORNERS}usemtl {used}\nf 1 2 3\n")
    return model.materials[model.meshes[0].parts[0].material], model


# --- MTL


@pytest.mark.parametrize(
    ("lines", "opacity"),
    [
        ("Tr 1.000000", 1.0),  # all would vanish
        ("Tr 1.000000\nd 1", 1.0),
        ("d 0.25\nTr 1.0", 0.25),  # d says it
        ("Tr 0.25", 0.75),
        ("d 0", 1.0),
    ],
)
def test_opacity(tmp_path, lines, opacity):
    material, _ = material_of(tmp_path, f"newmtl m\nKd 1 0 0\n{lines}\n")
    assert material.base_color.tolist() == [1, 0, 0, opacity]
    assert material.alpha_mode == ("BLEND" if opacity < 1 else "OPAQUE")


def test_meshlab_writes_opacity_as_tr(tmp_path):
    head = "#\n# Wavefront material file\n# Converted by Meshlab Group\n#\n"
    material, model = material_of(tmp_path, f"{head}newmtl m\nTr 0.3\nnewmtl n\nTr 1.0\n")
    assert material.base_color[3] == 0.3 and not model.notes
    assert model.materials[1].base_color[3] == 1


def test_one_of_two_materials_may_be_hidden(tmp_path):
    (tmp_path / "a.mtl").write_text("newmtl m\nTr 1\nnewmtl n\nKd 0 1 0\n")
    text = f"mtllib a.mtl\n{CORNERS}usemtl m\nf 1 2 3\nusemtl n\nf 1 3 2\n"
    model = read(tmp_path, "a.obj", text)
    assert [x.base_color[3] for x in model.materials] == [0, 1]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("Kd xyz 0.5 0.5 0.5", ["Kd", "'m'", "line 2"]),
        ("Kd spectral file.rfl 1", ["Kd"]),
        ("Ns", ["Ns", "a finite number"]),
        ("Ns nan", ["Ns"]),
        ("d", ["d of"]),
        ("Ke 1 2", ["Ke"]),
        ("Ke 1e39 0 0", ["Ke", "3 finite numbers"]),
        ("map_Kd C:\\textures\\wood.png", ["wood.png", "no picture"]),
        ("map_Kd /textures/wood.png", ["wood.png", "no picture"]),
        ("map_Kd ../wood.png", ["wood.png", "no picture"]),
        ("map_Kd", ["no picture"]),
    ],
)
def test_lines_that_cannot_be_read_are_noted(tmp_path, line, words):
    material, model = material_of(tmp_path, f"newmtl m\n{line}\nPm 0.5\n")
    assert material.metallic == 0.5 and material.base_texture is None
    says(model, *words)


@pytest.mark.parametrize("name", ["C:\\art\\Wood.PNG", "/home/me/wood.png", "WOOD.png", "wood.png"])
def test_a_texture_of_another_folder_is_found_beside(tmp_path, name):
    (tmp_path / "wood.png").write_bytes(encode_png(TEXELS))
    material, _ = material_of(tmp_path, f"newmtl m\nmap_Kd {name}\n")
    np.testing.assert_array_equal(material.base_texture.texels, TEXELS)


def test_names_may_have_the_mark_of_comments(tmp_path):
    material, _ = material_of(tmp_path, "newmtl m#2\nKd 0 0 1 # blue\n", "m#2")
    assert material.name == "m#2" and material.base_color.tolist() == [0, 0, 1, 1]


def test_a_library_is_read_once(tmp_path):
    (tmp_path / "a.mtl").write_text("newmtl m\nKd 1 0 0\nNs\n")
    text = "mtllib a.mtl\n" * 50 + "mtllib gone.mtl\n" * 50
    model = read(tmp_path, "a.obj", f"{text}{CORNERS}usemtl m\nf 1 2 3\n")
    assert len(model.materials) == 1 and len(model.notes) == 2


@pytest.mark.parametrize("names", ["a.mtl", "b.mtl a.mtl"])
def test_a_library_in_the_working_directory(tmp_path, monkeypatch, names):
    """A path without a folder is what the file names its library."""
    monkeypatch.chdir(tmp_path)
    for name in ("a", "b"):
        (tmp_path / f"{name}.mtl").write_text(f"newmtl {name}\nKd 1 0 0\nmap_Kd wood.png\n")
    (tmp_path / "wood.png").write_bytes(encode_png(TEXELS))
    (tmp_path / "a.obj").write_text(f"mtllib {names}\n{CORNERS}usemtl a\nf 1 2 3\n")
    model = read_model("a.obj")
    material = model.materials[model.meshes[0].parts[0].material]
    np.testing.assert_array_equal(material.base_texture.texels, TEXELS)
    assert not model.notes


def test_textures_of_a_library_share_one_limit(tmp_path):
    """Forty flat pictures of 2,500 x 2,500 are small files, and 250 million texels."""
    from PIL import Image

    Image.new("RGB", (2500, 2500)).save(tmp_path / "0.png")
    data = (tmp_path / "0.png").read_bytes()
    lines = []
    for i in range(40):
        (tmp_path / f"{i}.png").write_bytes(data)
        lines.append(f"newmtl m{i}\nmap_Kd {i}.png\n")
    with pytest.raises(FileError, match="too many"):
        material_of(tmp_path, "".join(lines), "m0")


# --- OBJ


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"])
def test_encodings(tmp_path, encoding):
    (tmp_path / "a.mtl").write_bytes("newmtl rouge é\nKd 1 0 0\n".encode(encoding))
    text = f"mtllib a.mtl\n{CORNERS}usemtl rouge é\nf 1 2 3\n"
    model = read(tmp_path, "a.obj", text.encode(encoding))
    assert part_of(model).faces.tolist() == [[0, 1, 2]]
    assert model.materials[0].name == "rouge é"


@pytest.mark.parametrize("end", ["\r\n", "\r", "\n"])
@pytest.mark.parametrize("gap", [" ", "\t", "  "])
def test_spaces_and_ends_of_lines(tmp_path, end, gap):
    text = f" {CORNERS} f 1 2 3 # face\n# end\n".replace(" ", gap).replace("\n", end)
    np.testing.assert_array_equal(part_of(read(tmp_path, "a.obj", text)).vertices, TRIANGLE)


def test_faces_before_their_vertices(tmp_path):
    model = read(tmp_path, "a.obj", f"f 1 2 3\n{CORNERS}f 1 3 2\n")
    assert part_of(model).faces.tolist() == [[0, 1, 2], [0, 2, 1]]


@pytest.mark.parametrize("corner", ["{0}/{0}/{0}", "{0}//{0}", "{0}/{0}", "{0}/9/", "{0}/0/0"])
def test_coordinates_that_are_not_there_are_left_out(tmp_path, corner):
    face = " ".join(corner.format(i) for i in (1, 2, 3))
    model = read(tmp_path, "a.obj", f"{CORNERS}f {face}\n")
    part = part_of(model)
    assert part.uv is None and part.normals is None and part.faces.tolist() == [[0, 1, 2]]
    says(model, "3 x corner whose")


def test_some_corners_without_coordinates(tmp_path):
    text = f"{CORNERS}v 1 1 0\nvt 0.5 0.25\nvn 0 0 1\nf 1/1/1 2/1/1 3/1/1\nf 2//1 4//1 3\n"
    model = read(tmp_path, "a.obj", text)
    part = part_of(model)
    assert part.uv[part.faces[0]].tolist() == [[0.5, 0.25]] * 3
    assert part.uv[part.faces[1]].tolist() == [[0, 0]] * 3
    np.testing.assert_array_equal(part.normals, np.tile([0, 0, 1], (len(part.normals), 1)))
    says(model, "3 x vertex without coordinates", "1 x vertex without normal")


def test_a_dent_is_kept(tmp_path):
    part = part_of(read(tmp_path, "a.obj", "v 0 0 0\nv 2 1 0\nv 0 2 0\nv 1 1 0\nf 1 2 3 4\n"))
    a, b, c = (part.vertices[part.faces[:, i]] for i in range(3))
    assert_close(np.cross(b - a, c - a)[:, 2] / 2, [0.5, 0.5], 1e-6)


def test_lines_alone_are_refused_for_that(tmp_path):
    with pytest.raises(FileError, match="points, lines and curves"):
        read(tmp_path, "a.obj", f"{CORNERS}l 1 2 3\n")


def test_objects_are_read_as_each_is_alone(tmp_path):
    """With coordinates, normals, both or none; with faces without area, and vertices of no face."""
    rng, texts = np.random.default_rng(0), []
    corners = "{0}", "{0}/{0}", "{0}//{0}", "{0}/{0}/{0}"
    for number in range(20):
        count = int(rng.integers(4, 9))
        rows = {"v": rng.normal(size=(count, 3)), "vt": rng.random((count, 2))}
        rows["vn"] = rng.normal(size=(count, 3)) * (rng.random((count, 1)) > 0.2)
        lines = [f"o thing{number}"]
        for kind, table in rows.items():
            lines += [f"{kind} {' '.join(f'{x:.6f}' for x in row)}" for row in table]
        for face in -rng.integers(1, count + 1, (5, 3)):
            lines.append("f " + " ".join(corners[number % 4].format(i) for i in face))
        texts.append("\n".join(lines) + "\n")
    together = {mesh.name: mesh.parts for mesh in read(tmp_path, "a.obj", "".join(texts)).meshes}
    for number, text in enumerate(texts):
        (own,), alone = together[f"thing{number}"], part_of(read(tmp_path, "a.obj", text))
        for name in ("vertices", "faces", "normals", "uv"):
            found, wanted = getattr(own, name), getattr(alone, name)
            assert (found is None) == (wanted is None)
            if wanted is not None:
                np.testing.assert_array_equal(found, wanted)
                assert found.dtype == wanted.dtype


def test_many_objects_keep_their_parts(tmp_path):
    lines = [f"o {i}\nusemtl m{i % 3}\n{CORNERS}f -3 -2 -1\n" for i in range(300)]
    model = read(tmp_path, "a.obj", "".join(lines))
    assert [node.name for node in model.nodes] == [str(i) for i in range(300)]
    assert [mesh.parts[0].name for mesh in model.meshes] == [f"m{i % 3}" for i in range(300)]
    assert all(len(mesh.parts[0].vertices) == 3 for mesh in model.meshes)


# --- STL


def stl_text(end: str) -> str:
    lines = "".join(f"vertex {x} {y} {z}\n" for x, y, z in TRIANGLE)
    return f"solid x\nfacet normal 0 0 1\nouter loop\n{lines}endloop\nendfacet\n{end}"


@pytest.mark.parametrize("end", ["endsolid x\n", "end solid x\n", "END SOLID", ""])
def test_ends_of_stl_text(tmp_path, end):
    model = read(tmp_path, "a.stl", stl_text(end))
    assert len(part_of(model).faces) == 1
    assert bool(model.notes) == (not end)


def test_stl_words_apart_and_in_one_line(tmp_path):
    text = stl_text("end solid").replace("endloop", "end loop").replace("endfacet", "end facet")
    assert len(part_of(read(tmp_path, "a.stl", text)).faces) == 1
    one_line = text.replace("solid x\n", "solid\n").replace("\n", " ")
    assert len(part_of(read(tmp_path, "b.stl", one_line)).faces) == 1
    named = text.replace("solid x", "solid vertex endfacet 1")
    assert len(part_of(read(tmp_path, "c.stl", named)).faces) == 1


def test_bytes_after_the_end_of_stl(tmp_path):
    data = bytes(80) + struct.pack("<I12fH", 1, 0, 0, 1, *TRIANGLE.ravel(), 0)
    model = read(tmp_path, "a.stl", data + b"\r\n")
    assert len(part_of(model).faces) == 1
    says(model, "2 x byte after the end")


# --- PLY


def ply(vertex: str, rows: list[str], face: str, faces: list[str], comment: str = "") -> str:
    head = f"ply\nformat ascii 1.0\n{comment}element vertex {len(rows)}\n"
    head += "".join(f"property float {axis}\n" for axis in "xyz") + vertex
    return f"{head}{face}end_header\n" + "\n".join([*rows, *faces]) + "\n"


FACE = "element face {}\nproperty list uchar int vertex_indices\n"
PLACES = ["0 0 0", "1 0 0", "1 1 0", "0 1 0"]


def test_ply_diffuse_colors(tmp_path):
    names = "".join(f"property uchar diffuse_{x}\n" for x in ("red", "green", "blue"))
    rows = [f"{x} 255 188 0" for x in PLACES]
    part = part_of(read(tmp_path, "a.ply", ply(names, rows, FACE.format(1), ["3 0 1 2"])))
    assert_close(part.colors[0], [1, 0.502886, 0, 1], 1e-5)


@pytest.mark.parametrize("faces", [["3 0 1 2", "3 0 2 3"], ["3 0 1 2", "4 0 1 2 3", "3 0 2 3"]])
def test_ply_colors_of_faces(tmp_path, faces):
    """Corners of faces of two colours become two vertices; the surface stays smooth."""
    names = "".join(f"property uchar {x}\n" for x in ("red", "green", "blue"))
    rows = [f"{x} {255 * (i == 0)} 0 {255 * (i > 0)}" for i, x in enumerate(faces)]
    places = [*PLACES[:2], "1 1 1", PLACES[3]]
    head = FACE.format(len(rows)) + names
    part = part_of(read(tmp_path, "a.ply", ply("", places, head, rows)))
    found = part.colors[part.faces]
    assert found[0].tolist() == [[1, 0, 0, 1]] * 3
    assert np.all(found[1:] == [0, 0, 1, 1])
    shared = np.all(part.vertices == 0, axis=1)
    assert np.sum(shared) == 2 and np.ptp(part.normals[shared], axis=0).max() == 0


@pytest.mark.parametrize("there", [True, False])
def test_ply_texture_and_coordinates_of_corners(tmp_path, there):
    if there:
        (tmp_path / "a wood.png").write_bytes(encode_png(TEXELS))
    head = FACE.format(2) + "property list uchar float texcoord\n"
    faces = ["3 0 1 2 6 0 0 1 0 1 1", "3 0 2 3 6 0.5 0 1 1 0 1"]
    text = ply("", PLACES, head, faces, "comment TextureFile a wood.png\n")
    model = read(tmp_path, "a.ply", text)
    part = part_of(model)
    # The second vertex at the origin has other coordinates.
    assert len(part.vertices) == 5
    assert part.uv[part.faces].tolist() == [
        [[0, 0], [1, 0], [1, 1]],
        [[0.5, 0], [1, 1], [0, 1]],
    ]
    texture = model.materials[part.material].base_texture
    assert (texture is not None) == there
    if there:
        np.testing.assert_array_equal(texture.texels, TEXELS)
    else:
        says(model, "a wood.png")


def test_ply_several_textures(tmp_path):
    head = FACE.format(2) + "property list uchar float texcoord\nproperty int texnumber\n"
    faces = ["3 0 1 2 6 0 0 1 0 1 1 1", "3 0 2 3 6 0 0 1 1 0 1 0"]
    text = ply("", PLACES, head, faces, "comment TextureFile a.png\ncomment TextureFile b.png\n")
    model = read(tmp_path, "a.ply", text)
    assert [part.material for part in model.meshes[0].parts] == [0, 1]
    assert model.meshes[0].parts[1].vertices[2].tolist() == [1, 1, 0]


@pytest.mark.parametrize("order", ["ascii", "<"])
def test_ply_triangle_strips(tmp_path, order):
    head = "element tristrips 1\nproperty list int int vertex_indices\n"
    strip = [0, 1, 3, 2, -1, 2, 1, 0]
    text = ply("", PLACES, head, [])
    row = " ".join(map(str, [len(strip), *strip]))
    data = f"{text}{row}\n".encode()
    if order == "<":
        start = text.split("end_header\n", 1)[0] + "end_header\n"
        data = start.replace("ascii", "binary_little_endian").encode()
        data += np.float32([list(map(float, x.split())) for x in PLACES]).tobytes()
        data += struct.pack("<9i", len(strip), *strip)
    part = part_of(read(tmp_path, "a.ply", data))
    # Every second triangle is turned round, and -1 begins another strip.
    assert part.faces.tolist() == [[0, 1, 3], [1, 2, 3], [2, 1, 0]]


def test_ply_other_elements_are_counted(tmp_path):
    text = ply(
        "", PLACES, FACE.format(1) + "element edge 2\nproperty int a\n", ["3 0 1 2", "0", "1"]
    )
    says(read(tmp_path, "a.ply", text), "2 x row of the element 'edge'")


@pytest.mark.parametrize("rows", ["", "1 0\n", "x 0 0\n", "0 0 0\n1 0 0\n0 1 0\n3 0 1\n"])
def test_ply_messages_have_no_words_of_libraries(tmp_path, rows):
    text = ply("", PLACES[:3], FACE.format(1), ["3 0 1 2"])
    head = text.split("end_header\n")[0]
    with pytest.raises(FileError) as caught:
        read(tmp_path, "a.ply", f"{head}end_header\n{rows}")
    message = str(caught.value)
    assert "a.ply" in message
    assert not any(x in message for x in ("dimension", "axis", "array", "convert", "index "))


@pytest.mark.parametrize("order", ["ascii", "binary_little_endian"])
def test_ply_indices_with_points(tmp_path, order):
    face = FACE.format(1).replace("uchar int", "uchar float")
    data = ply("", PLACES[:3], face, ["3 0.0 1.0 2.0"])
    if order == "ascii":
        with pytest.raises(FileError, match="whole numbers"):
            read(tmp_path, "a.ply", data.replace("2.0\n", "1.5\n"))
    else:
        head = data[: data.index("end_header\n") + 11].replace("ascii", order)
        data = head.encode() + TRIANGLE.astype("<f4").tobytes() + struct.pack("<B3f", 3, 0, 1, 2)
    assert part_of(read(tmp_path, "a.ply", data)).faces.tolist() == [[0, 1, 2]]


# --- glTF


def gltf(tmp_path, change=lambda content: None, encode=lambda x: base64.b64encode(x).decode()):
    content, binary = everything()
    head = "data:application/octet-stream;base64,"
    content["buffers"][0]["uri"] = head + encode(binary)
    change(content)
    return read(tmp_path, "a.gltf", json.dumps(content))


@pytest.mark.parametrize("kind", ["plain", "no padding", "lines", "safe", "percent"])
def test_forms_of_base64(tmp_path, kind):
    def encode(data: bytes) -> str:
        text = base64.b64encode(data).decode()
        lines = "\n".join(text[i : i + 76] for i in range(0, len(text), 76))
        return {
            "plain": text,
            "no padding": text.rstrip("="),
            "lines": lines,
            "safe": text.replace("+", "-").replace("/", "_"),
            "percent": text.replace("=", "%3D"),
        }[kind]

    assert len(gltf(tmp_path, encode=encode).meshes) == 2


def test_another_parent_outside_of_the_scene(tmp_path):
    def change(content):
        content["nodes"].append({"name": "tmpParent", "children": [0], "translation": [9, 9, 9]})

    model = gltf(tmp_path, change)
    assert model.roots == (0, 5)
    with pytest.raises(FileError, match="two places"):
        gltf(tmp_path, lambda c: c["nodes"][5]["children"].append(1))
    with pytest.raises(FileError, match="two places"):
        gltf(tmp_path, lambda c: c["nodes"][4].update(children=[0]))


@pytest.mark.parametrize("version", [1.0, "1.0", None])
def test_the_first_version_is_named(tmp_path, version):
    content = {"asset": {} if version is None else {"version": version}, "meshes": {"a": {}}}
    with pytest.raises(FileError, match="glTF 1"):
        read(tmp_path, "a.gltf", json.dumps(content))
    with pytest.raises(FileError, match="glTF 1"):
        read(tmp_path, "a.glb", struct.pack("<4sIII", b"glTF", 1, 20, 0) + bytes(4))


def test_bytes_after_the_end_of_glb(tmp_path):
    model = read(tmp_path, "a.glb", pack_glb(*everything()) + b"\0\0\r\n")
    assert len(model.meshes) == 2
    says(model, "4 x byte after the end")


@pytest.mark.parametrize("index", [7, -1, None, "x"])
@pytest.mark.parametrize("place", ["index", "source"])
def test_a_texture_that_is_not_there(tmp_path, index, place):
    def change(content):
        if place == "source":
            content["textures"][0]["source"] = index
        else:
            pbr = content["materials"][0]["pbrMetallicRoughness"]
            pbr["baseColorTexture"]["index"] = index

    model = gltf(tmp_path, change)
    assert model.materials[0].base_texture is None
    says(model, "not there" if place == "source" else "no such texture")


@pytest.mark.parametrize(
    ("data", "word"),
    [(b"\xabKTX 20\xbb\r\n\x1a\n" + bytes(60), "KTX2"), (b"\x89PNG\r\n" + bytes(60), "damaged")],
)
def test_pictures_that_cannot_be_read(tmp_path, data, word):
    (tmp_path / "a.img").write_bytes(data)
    model = gltf(tmp_path, lambda c: c["images"].__setitem__(0, {"uri": "a.img"}))
    assert model.materials[0].base_texture is None
    says(model, word, "a.img")
    assert not any("BytesIO" in note for note in model.notes)


def test_a_picture_of_basis_alone(tmp_path):
    extension = {"KHR_texture_basisu": {"source": 0}}
    model = gltf(tmp_path, lambda c: c["textures"].__setitem__(0, {"extensions": extension}))
    says(model, "KHR_texture_basisu alone")


def test_compression_that_is_not_required(tmp_path):
    def draco(content):
        part = content["meshes"][0]["primitives"][0]
        part["extensions"] = {"KHR_draco_mesh_compression": {"bufferView": 0}}
        if empty:
            del content["accessors"][0]["bufferView"]

    empty = False
    assert len(gltf(tmp_path, draco).meshes) == 2  # the plain arrays are there, too
    empty = True
    with pytest.raises(FileError, match="Draco"):
        gltf(tmp_path, draco)

    def meshopt(content):
        content["buffers"].append({"byteLength": 1000})
        view = content["bufferViews"][0]
        view["extensions"] = {"EXT_meshopt_compression": {"buffer": 0}}
        view["buffer"] = 1 if empty else 0

    with pytest.raises(FileError, match="meshopt"):
        gltf(tmp_path, meshopt)
    empty = False
    assert len(gltf(tmp_path, meshopt).meshes) == 2


def test_points_alone_are_refused_for_that(tmp_path):
    def change(content):
        for mesh in content["meshes"]:
            for part in mesh["primitives"]:
                part["mode"] = 0

    with pytest.raises(FileError, match="points or lines alone"):
        gltf(tmp_path, change)


def test_extensions_are_counted_where_they_are(tmp_path):
    def change(content):
        for kind, entry in (
            ("file", content),
            ("node", content["nodes"][0]),
            ("mesh", content["meshes"][0]),
            ("part", content["meshes"][0]["primitives"][0]),
            ("texture", content["textures"][0]),
            ("scene", content["scenes"][0]),
            ("camera", content["cameras"][0]),
        ):
            entry.setdefault("extensions", {})[f"EXT_{kind}"] = {}

    model = gltf(tmp_path, change)
    for kind in ("file", "node", "mesh", "part", "texture", "scene", "camera"):
        says(model, f"EXT_{kind} of a")


@pytest.mark.parametrize("scale", [[1, 1, 1e-9], [0.15, 0.15, 1e7], [1e-3, 1e5, 1]])
def test_scales_without_an_inverse_are_refused_by_node(tmp_path, scale):
    with pytest.raises(FileError, match=r"nodes\[1\] \('leg'\) is scaled by"):
        gltf(tmp_path, lambda c: c["nodes"][1].update(scale=scale))


def test_copies_of_a_mesh(tmp_path):
    binary = Binary()
    position = binary.array(TRIANGLE, "VEC3", 5126)
    shift = binary.array(np.float32([[0, 0, 0], [5, 0, 0], [0, 7, 0]]), "VEC3", 5126)
    # A quarter about z, in normalised integers.
    half = round(32767 * 0.5**0.5)
    turns = np.int16([[0, 0, 0, 32767], [0, 0, half, half], [0, 0, 0, 32767]])
    turn = binary.array(turns, "VEC4", 5122, normalized=True)
    scale = binary.array(np.float32([[1, 1, 1], [2, 2, 2], [0, 0, 0]]), "VEC3", 5126)
    attributes = {"TRANSLATION": shift, "ROTATION": turn, "SCALE": scale, "_ID": shift}
    content = {
        "asset": {"version": "2.0"},
        "buffers": [{"byteLength": len(binary.data)}],
        "bufferViews": binary.views,
        "accessors": binary.accessors,
        "meshes": [{"primitives": [{"attributes": {"POSITION": position}}]}],
        "nodes": [
            {"mesh": 0, "extensions": {"EXT_mesh_gpu_instancing": {"attributes": attributes}}}
        ],
        "extensionsRequired": ["EXT_mesh_gpu_instancing"],
    }
    model = read(tmp_path, "a.glb", pack_glb(content, binary.data))
    copies = model.nodes[0].copies
    assert copies.shape == (2, 4, 4)
    assert_close(copies[1] @ [1, 0, 0, 1], [5, 2, 0, 1], 1e-4)
    says(model, "_ID", "1 x copy scaled to nothing")
    del attributes["SCALE"]
    attributes["ROTATION"] = position
    with pytest.raises(FileError, match="VEC4"):
        read(tmp_path, "a.glb", pack_glb(content, binary.data))
