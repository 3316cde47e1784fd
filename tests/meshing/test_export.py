"""Exported files, read again by the library and by trimesh."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import scenegraph as sg
from scenegraph.images import srgb_numbers
from scenegraph.io import FileError, MissingExtra
from scenegraph.meshing import export_scene, MeshOptions
from support.solid_fields import Balls


CUBE = sg.Box([-1.0] * 3, [1.0] * 3)
FIELD = Balls([[0.0, 0, 0]], [0.6])
OPTIONS = MeshOptions(level=0.5, resolution=24, faces=600, texture=64)
CAMERA = sg.PerspectiveCamera.look_at([1.0, -5, 2.0], [0.0, 0, 0], [0.0, 0, 1], 0.5, 24, 24)


def cloud(background=(0.2, 0.4, 0.6)):
    return sg.Scene(sg.Group(cloud=sg.Volume(FIELD, bounds=CUBE)), background=background)


@pytest.fixture(autouse=True)
def packages():
    for name in ("skimage", "fast_simplification", "xatlas"):
        pytest.importorskip(name)


@pytest.mark.slow
@pytest.mark.parametrize("texture", [64, None])
def test_a_file_read_again_looks_like_the_field(tmp_path, texture):
    path = tmp_path / "cloud.glb"
    export_scene(cloud(), path, dataclasses.replace(OPTIONS, texture=texture))
    again = sg.render(sg.load_scene(path), CAMERA)
    truth = sg.render(cloud(), CAMERA, sg.Hierarchical((64,)))
    # But for the outline, which the surface of the opacity moves by part of a cell.
    error = np.abs(srgb_numbers(again) - srgb_numbers(truth))
    assert np.median(error) < 0.01 and np.sqrt(np.mean(error**2)) < 0.06


def test_the_file_is_unlit_and_in_linear_light(tmp_path):
    path = tmp_path / "cloud.glb"
    export_scene(cloud(), path, OPTIONS)
    scene = sg.load_scene(path)
    assert len(scene["cloud.shape.faces"]) <= 600
    assert isinstance(scene["cloud.shader"], sg.ImageTexture)
    # sRGB 0.2, 0.4, 0.6 in linear light, by the formula of IEC 61966-2-1.
    expected = [((x + 0.055) / 1.055) ** 2.4 for x in (0.2, 0.4, 0.6)]
    assert np.allclose(scene.background.shader.color, expected, atol=1e-6)
    # The texture's middle grey, x = 0, is sRGB 0.5.
    mean = np.mean(np.asarray(scene["cloud.shader.texels"]) ** (1 / 2.2))
    assert 0.4 < mean < 0.6
    assert b"KHR_materials_unlit" in path.read_bytes()


@pytest.mark.parametrize("z_up", [False, True])
def test_a_file_keeps_how_colours_change_with_the_view(tmp_path, z_up):
    """Of a field whose colour is the direction of view; also where the file is turned."""
    field, path = dataclasses.replace(FIELD, by_direction=True), tmp_path / "cloud.glb"
    places = np.random.default_rng(0).normal(size=(40, 3))
    viewpoints = 4 * places / np.linalg.norm(places, axis=1, keepdims=True)
    scene = sg.Scene(sg.Group(cloud=sg.Volume(field, bounds=CUBE)))
    options = dataclasses.replace(OPTIONS, texture=256)
    export_scene(scene, path, options, viewpoints=viewpoints, z_up=z_up)
    camera = sg.PerspectiveCamera.look_at([1.0, -5, 2.0], [0.0, 0, 0], [0.0, 0, 1], 0.5, 24, 24)
    again = sg.render(sg.load_scene(path, y_up=z_up), camera)
    inside = np.asarray(again.alpha) > 0.999
    rows, columns = np.nonzero(inside)
    pixels = np.stack([columns + 0.5, rows + 0.5], axis=-1).astype(np.float32)
    # The camera in the field's own frame.
    views = jax.vmap(lambda at: CAMERA.line(at)[1])(jnp.asarray(pixels))
    views /= np.linalg.norm(views, axis=1, keepdims=True)
    error = srgb_numbers(again)[inside] - (views + 1) / 2
    assert inside.sum() > 50 and np.sqrt(np.mean(error**2)) < 0.03


def test_a_mesh_as_ply(tmp_path):
    trimesh = pytest.importorskip("trimesh")
    path = tmp_path / "cloud.ply"
    turned = sg.Transformed(sg.Volume(FIELD, bounds=CUBE), sg.Similarity([0.0, 0, 5], scale=2.0))
    export_scene(sg.Scene(sg.Group(cloud=turned)), path, OPTIONS)
    mesh = trimesh.load(path)
    assert len(mesh.faces) <= 600 and mesh.is_watertight and mesh.volume > 0
    offset = mesh.vertices - [0.0, 0, 5]
    distance = np.linalg.norm(offset, axis=1)
    assert np.max(np.abs(distance - 1.35)) < 0.05
    # The colours of the place, as sRGB bytes.
    colors = mesh.visual.vertex_colors[:, :3] / 255
    assert np.max(np.abs(colors - (offset / 2 + 1) / 2)) < 0.03
    assert np.min(np.sum(mesh.vertex_normals * offset, axis=1) / distance) > 0.9
    again = sg.load_scene(path)
    assert again["cloud.shape.faces"].shape == mesh.faces.shape


def test_points_as_ply(tmp_path):
    trimesh = pytest.importorskip("trimesh")
    path = tmp_path / "cloud.ply"
    export_scene(cloud(), path, OPTIONS, points=True)
    found = trimesh.load(path)
    assert isinstance(found, trimesh.PointCloud) and len(found.vertices) > 1000
    data = found.metadata["_ply_raw"]["vertex"]["data"]
    normals = np.stack([data[name] for name in ("nx", "ny", "nz")], axis=-1).reshape(-1, 3)
    outward = found.vertices / np.linalg.norm(found.vertices, axis=1, keepdims=True)
    assert np.min(np.sum(normals * outward, axis=1)) > 0.95
    assert np.max(np.abs(found.colors[:, :3] / 255 - (found.vertices + 1) / 2)) < 0.03


def test_a_scene_of_surfaces(tmp_path):
    """Also without volumes: triangles of analytic shapes in the world, mirrored ones turned."""
    trimesh = pytest.importorskip("trimesh")
    mirror = sg.Affine(np.diag([-1.0, 1, 1]), [4.0, 0, 0])
    scene = sg.Scene(
        sg.Group(
            ball=sg.Surface(sg.Sphere(), [1.0, 0.5, 0.0]),
            box=sg.Transformed(sg.Surface(sg.Box(), [0.0, 0.5, 1.0]), mirror),
        )
    )
    export_scene(scene, tmp_path / "a.ply")
    mesh = trimesh.load(tmp_path / "a.ply")
    expected = 4 / 3 * np.pi + 27
    assert mesh.volume == pytest.approx(expected, rel=0.005)
    assert mesh.bounds[1][0] == pytest.approx(5.5)
    ball = np.linalg.norm(mesh.vertices, axis=1) < 1.01
    assert np.all(np.abs(mesh.visual.vertex_colors[ball][:, :3] - [255, 127.5, 0]) < 1)
    export_scene(scene, tmp_path / "a.glb")
    assert np.allclose(
        sg.load_scene(tmp_path / "a.glb")["ball.shader.color"], [1.0, 0.2140, 0.0], atol=1e-3
    )


def test_refused(tmp_path):
    with pytest.raises(FileError, match=r"must end in \.glb or \.ply"):
        export_scene(cloud(), tmp_path / "a.obj")
    with pytest.raises(FileError, match=r"must end in \.ply, to be a file of points"):
        export_scene(cloud(), tmp_path / "a.glb", points=True)
    with pytest.raises(FileError, match="there is no folder"):
        export_scene(cloud(), tmp_path / "gone" / "a.glb")
    with pytest.raises(ValueError, match="neither volumes nor surfaces"):
        export_scene(sg.Scene(sg.Group()), tmp_path / "a.glb")


def test_a_package_that_is_missing(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "xatlas", None)
    with pytest.raises(MissingExtra, match=r"a texture needs `pip install scenegraph\[mesh\]`"):
        export_scene(cloud(), tmp_path / "a.glb", OPTIONS)
    assert not (tmp_path / "a.glb").exists()
