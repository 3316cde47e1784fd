"""OBJ, PLY and STL files: read as trimesh reads them; damage refused or counted."""

import os
import pathlib
import struct

import numpy as np
import pytest

from scenegraph.io import FileError, write_picture
from scenegraph.models import read_model
from support.helpers import assert_close
from support.model_files import flip_bytes, TEXELS


SQUARE = "v 0 0 0\nv 1 0 0\nv 1 1 0\nv 0 1 0\n"
DATA = os.environ.get("SCENEGRAPH_DATA")
needs_models = pytest.mark.skipif(
    not DATA or not (pathlib.Path(DATA or "") / "models").is_dir(),
    reason="SCENEGRAPH_DATA names no folder with models/",
)


def read(tmp_path, name: str, data: str | bytes):
    path = tmp_path / name
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return read_model(path)


def part_of(tmp_path, name: str, data: str | bytes):
    (mesh,) = read(tmp_path, name, data).meshes
    (part,) = mesh.parts
    return part


def refused(tmp_path, name: str, data: str | bytes, *parts: str) -> None:
    with pytest.raises(FileError) as caught:
        read(tmp_path, name, data)
    assert all(part in str(caught.value) for part in (name, *parts)), caught.value


def triangles(part) -> np.ndarray:
    """The triangles' corners, `n 9`, sorted."""
    rows = np.asarray(part.vertices, np.float32)[part.faces].reshape(-1, 9)
    # Text has fewer digits, and some have a minus before a zero.
    return rows[np.lexsort(np.round(rows, 4).T + 0.0)]


# --- Beside trimesh


@needs_models
@pytest.mark.parametrize("name", ["bob/bob_tri.obj", "spot/spot.obj"])
def test_real_models(name):
    trimesh = pytest.importorskip("trimesh", reason="needs trimesh")
    path = pathlib.Path(DATA or "") / "models" / name
    (part,) = read_model(path).meshes[0].parts
    other = trimesh.load(path, process=False)
    np.testing.assert_array_equal(triangles(part), triangles(other))
    corners = np.concatenate([part.vertices, part.uv, part.normals], axis=1)[part.faces]
    theirs = [other.vertices, other.visual.uv, other.vertex_normals]
    theirs = np.concatenate(theirs, axis=1)[other.faces]
    order, back = (np.lexsort(x[..., :3].reshape(-1, 9).T) for x in (corners, theirs))
    assert_close(corners[order], theirs[back], 1e-5)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("a.stl", {}),
        ("a.stl", {"file_type": "stl_ascii"}),
        ("a.ply", {}),
        ("a.ply", {"encoding": "ascii"}),
        ("a.obj", {}),
        ("a.glb", {}),
    ],
)
def test_files_of_trimesh(tmp_path, name, options):
    trimesh = pytest.importorskip("trimesh", reason="needs trimesh")
    mesh = trimesh.creation.annulus(r_min=0.5, r_max=1.0, height=0.3, sections=20)
    data = mesh.export(file_type=options.pop("file_type", name[2:]), **options)
    part = part_of(tmp_path, name, data)
    assert_close(triangles(part), triangles(mesh), 1e-6)
    assert len(part.vertices) == len(mesh.vertices)


# --- OBJ


def test_obj_polygons_and_indices_from_the_last(tmp_path):
    part = part_of(tmp_path, "a.obj", SQUARE + "f 1 2 3 4\nv 5 5 5\nf -1 -5 -4 # three\n")
    assert part.vertices[part.faces[:2]].tolist() == [
        [[0, 0, 0], [1, 0, 0], [1, 1, 0]],
        [[0, 0, 0], [1, 1, 0], [0, 1, 0]],
    ]
    assert part.vertices[part.faces[2]].tolist() == [[5, 5, 5], [0, 0, 0], [1, 0, 0]]


def test_obj_corners_with_other_coordinates_are_other_vertices(tmp_path):
    text = SQUARE + "vt 0 0\nvt 1 0.25\nvn 0 0 2\nf 1/1/1 2/2/1 3/1/1\nf 1/2/1 3/1/1 4/1/1\n"
    part = part_of(tmp_path, "a.obj", text)
    assert part.vertices.shape == (5, 3) and part.faces.tolist() == [[0, 1, 2], [3, 2, 4]]
    assert part.uv[part.faces[1, 0]].tolist() == [1, 0.25]
    np.testing.assert_array_equal(part.normals, np.tile([0, 0, 1], (5, 1)))


def test_obj_objects_materials_and_colors(tmp_path):
    write_picture(tmp_path / "a b.png", TEXELS)
    (tmp_path / "a.mtl").write_text(
        "newmtl red\nKd 1 0 0\nd 0.5\nNs 30\nnewmtl picture\nmap_Kd -clamp on a b.png\nKd 0 0 0\n"
    )
    vertices = "".join(f"v {x} {y} 0 1 0.5 0\n" for x, y in ((0, 0), (1, 0), (0, 1)))
    text = f"mtllib a.mtl\no one\n{vertices}usemtl red\nf 1 2 3\no two\nf 1 3 2\nusemtl picture\n"
    model = read(tmp_path, "a.obj", text + "f 3 2 1\nusemtl none\nf 2 3 1\nf 1 1 2\n")
    assert [node.name for node in model.nodes] == ["one", "two"]
    red, picture = model.materials
    assert red.base_color.tolist() == [1, 0, 0, 0.5] and red.alpha_mode == "BLEND"
    # A lobe of cos^n of the half vector: n = 2 / roughness^4 - 2.
    assert red.roughness == pytest.approx((2 / 32) ** 0.25)
    np.testing.assert_array_equal(picture.base_texture.texels, TEXELS)
    assert picture.base_texture.wrap == ("clamp", "clamp")
    np.testing.assert_array_equal(picture.base_color, np.ones(4))
    assert [part.material for mesh in model.meshes for part in mesh.parts] == [0, 0, 1, None]
    # (0.5 + 0.055) / 1.055 to the power of 2.4
    assert_close(model.meshes[0].parts[0].colors[0], [1, 0.214041, 0, 1], 1e-5)
    for note in ("'none'", "1 x face without area"):
        assert any(note in found for found in model.notes), model.notes


@pytest.mark.parametrize(
    ("line", "parts"),
    [
        ("f 1 2 5", ["line 5", "1 2 5", "(4)"]),
        ("f 0 1 2", ["line 5"]),
        ("f -5 1 2", ["line 5"]),
        ("f 1 2 99999999999999999999", ["line 5"]),
        ("f 1 two 3", ["line 5", "two"]),
        ("v 1 2\nf 1 2 3", ["line 5", "3 numbers", "1 2"]),
        ("v 1 2 x\nf 1 2 3", ["line 5", "1 2 x"]),
        ("v 1 2 nan\nf 1 2 5", ["not finite"]),
        ("", ["no faces"]),
        ("f 1 1 1", ["no faces"]),
    ],
)
def test_obj_refused(tmp_path, line, parts):
    refused(tmp_path, "a.obj", SQUARE + line, *parts)


@pytest.mark.parametrize("name", ["../x", "/etc/passwd", "sub/../../x", "link"])
def test_obj_reads_nothing_outside_of_its_folder(tmp_path, name):
    folder = tmp_path / "folder"
    folder.mkdir()
    (tmp_path / "x").write_text("newmtl a")
    (folder / "link").symlink_to("../x")
    model = read(folder, "a.obj", f"mtllib {name}\n{SQUARE}f 1 2 3")
    assert not model.materials and any("in its folder" in note for note in model.notes)
    (folder / "a.mtl").write_text(f"newmtl a\nmap_Kd {name}\n")
    model = read(folder, "b.obj", f"mtllib a.mtl\n{SQUARE}usemtl a\nf 1 2 3")
    assert model.materials[0].base_texture is None
    assert any(name in note and "in its folder" in note for note in model.notes)


def test_obj_missing_files_are_noted(tmp_path):
    (tmp_path / "a.mtl").write_text("newmtl a\nmap_Kd gone.png\nmap_Bump b.png\n")
    notes = read(tmp_path, "a.obj", f"mtllib a.mtl\nmtllib b.mtl\n{SQUARE}f 1 2 3").notes
    for part in ("gone.png", "b.mtl", "map_Bump"):
        assert any(part in note for note in notes), notes


# --- PLY


HEADER = "ply\nformat {}\ncomment x\nelement vertex 4\nproperty float x\nproperty float y\n"
HEADER += "property double z\nproperty uchar red\nproperty uchar green\nproperty uchar blue\n"
HEADER += "element face 2\nproperty list uchar int vertex_indices\n"
HEADER += "element edge 1\nproperty int vertex1\nend_header\n"
ROWS = [(0, 0, 0, 255, 0, 0), (1, 0, 0, 0, 188, 0), (1, 1, 0, 0, 0, 255), (0, 1, 0, 9, 9, 9)]
FACES = [(4, 0, 1, 2, 3), (3, 0, 1, 3)]


def ply(order: str, rows=ROWS, faces=FACES) -> bytes:
    formats = {"": "ascii 1.0", "<": "binary_little_endian 1.0", ">": "binary_big_endian 1.0"}
    head = HEADER.format(formats[order]).encode()
    if order == "":
        return head + "\n".join(" ".join(map(str, x)) for x in (*rows, *faces, (7,))).encode()
    body = b"".join(struct.pack(f"{order}ffdBBB", *row) for row in rows)
    body += b"".join(struct.pack(f"{order}B{len(x) - 1}i", *x) for x in faces)
    return head + body + struct.pack(f"{order}i", 7)


orders = pytest.mark.parametrize("order", ["", "<", ">"])


@orders
def test_ply(tmp_path, order):
    part = part_of(tmp_path, "a.ply", ply(order))
    np.testing.assert_array_equal(part.vertices, np.array(ROWS)[:, :3])
    assert part.faces.tolist() == [[0, 1, 2], [0, 2, 3], [0, 1, 3]]
    # 188 of 255 is half of the light.
    assert_close(part.colors[1], [0, 0.502886, 0, 1], 1e-5)


@orders
@pytest.mark.parametrize(
    ("change", "part"),
    [
        ({"faces": [(3, 0, 1, 2), (3, 0, 1, 4)]}, "[0, 1, 4]; there are 4"),
        ({"faces": [(3, 0, 1, 2), (3, 0, 1, -1)]}, "there are 4"),
        ({"faces": [(3, 0, 1, 2)]}, "a.ply"),
        ({"rows": ROWS[:3]}, "a.ply"),
        ({"rows": [(np.nan, *ROWS[0][1:]), *ROWS[1:]]}, "not finite"),
    ],
)
def test_ply_refused(tmp_path, order, change, part):
    refused(tmp_path, "a.ply", ply(order, **change), part)


@orders
def test_ply_cut_anywhere(tmp_path, order):
    data = ply(order)
    for end in range(0, len(data) - 4, 3):
        refused(tmp_path, "a.ply", data[:end])


@pytest.mark.parametrize("count", ["4000000000", "-1", "99999999999999", "x"])
def test_ply_counts_that_lie(tmp_path, count):
    for order in ("", "<"):
        data = ply(order).replace(b"vertex 4", b"vertex " + count.encode())
        refused(tmp_path, "a.ply", data)
        data = ply(order).replace(b"face 2", b"face " + count.encode())
        refused(tmp_path, "a.ply", data)


def test_ply_points_are_no_surface(tmp_path):
    head = "ply\nformat ascii 1.0\nelement vertex 1\nproperty float x\nproperty float y\n"
    refused(tmp_path, "a.ply", head + "property float z\nend_header\n0 0 0\n", "no faces")


# --- STL


def stl(corners: np.ndarray, count: int | None = None) -> bytes:
    data = b"solid " + b" " * 74 + struct.pack("<I", len(corners) if count is None else count)
    return data + b"".join(struct.pack("<12fH", 0, 0, 0, *x.ravel(), 0) for x in corners)


TETRAHEDRON = np.float32([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]])
SIDES = np.array([[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]])


def stl_text(corners: np.ndarray) -> str:
    text = "solid a solid\n"
    for facet in corners:
        lines = "".join(f"vertex {x} {y} {z:e}\n" for x, y, z in facet)
        text += f"facet normal 0 0 0\nouter loop\n{lines}endloop\nendfacet\n"
    return text + "endsolid\n"


@pytest.mark.parametrize("write", [stl, stl_text])
def test_stl_corners_at_one_place_are_one_vertex(tmp_path, write):
    corners = TETRAHEDRON[SIDES]
    corners[0, 0] = -0.0
    part = part_of(tmp_path, "a.stl", write(corners))
    assert part.vertices.shape == (4, 3) and not part.smooth
    np.testing.assert_array_equal(part.vertices[part.faces], TETRAHEDRON[SIDES])


@pytest.mark.parametrize("count", [0, 3, 5, 4_000_000_000])
def test_stl_counts_that_lie(tmp_path, count):
    refused(tmp_path, "a.stl", stl(TETRAHEDRON[SIDES], count))


@pytest.mark.parametrize("write", [stl, stl_text])
def test_stl_cut_anywhere(tmp_path, write):
    data = write(TETRAHEDRON[SIDES])
    for end in range(0, len(data) - 10, 7):
        try:
            model = read(tmp_path, "a.stl", data[:end])
        except FileError as error:
            assert "a.stl" in str(error)
        else:  # between two facets
            assert any("without an end" in note for note in model.notes)
            assert len(model.meshes[0].parts[0].faces) == data[:end].count("endfacet")


def test_stl_numbers_that_are_none(tmp_path):
    corners = TETRAHEDRON[SIDES]
    corners[1, 1, 1] = np.nan
    refused(tmp_path, "a.stl", stl(corners), "not finite")
    refused(tmp_path, "a.stl", stl_text(TETRAHEDRON[SIDES]).replace("vertex 1.0", "vertex x", 1))
    refused(tmp_path, "a.stl", stl(np.zeros((1, 3, 3))), "no facet")


# --- Damage at random


FILES = {
    "a.obj": f"{SQUARE}vt 0 0\nvn 0 0 1\no a\nusemtl b\nf 1/1/1 2/1/1 3/1/1\nf 1 3 4\n".encode(),
    "a.ply": ply(""),
    "b.ply": ply("<"),
    "a.stl": stl(TETRAHEDRON[SIDES]),
    "b.stl": stl_text(TETRAHEDRON[SIDES]).encode(),
}


@pytest.mark.parametrize("name", FILES)
def test_damage_at_random(tmp_path, name):
    data, read_some = FILES[name], 0
    for seed in range(150):
        rng = np.random.default_rng(seed)
        damaged = flip_bytes(data, rng, int(rng.integers(1, 5)))
        if seed % 3 == 0:
            cut = int(rng.integers(len(data)))
            damaged = data[:cut] + damaged[cut + int(rng.integers(9)) :]
        try:
            read(tmp_path, name, damaged)
            read_some += 1
        except FileError:
            continue
    assert 0 < read_some < 150


def test_obj_lines_without_numbers(tmp_path):
    refused(tmp_path, "a.obj", "v\nv\nf 1 2 1", "line 1")
    part = part_of(tmp_path, "a.obj", f"{SQUARE}v 5 5 5 1\nvt 0.5\nf 1/1 2/1 3/1\n")
    assert part.uv.tolist() == [[0.5, 0]] * 3
