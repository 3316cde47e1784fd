"""`scenegraph export` of saved scenes and of runs."""

import warnings

import numpy as np
import pytest

import scenegraph as sg
from scenegraph.cli import main
from scenegraph.runs import open_run
from scenegraph.runs._paths import summarise_cameras
from support.blender_folder import COLOR, write_ball
from support.command_line import refused


SMALL = "--resolution 24 --faces 400 --texture 64 --level 0.5".split()
TINY = "--preset tiny --batch-size 32 --width 8 --depth 2 --view-width 4 --samples 4 4".split()


@pytest.fixture
def saved(tmp_path):
    path = tmp_path / "scene.sg"
    scene = sg.Scene(sg.Group(ball=sg.Surface(sg.Sphere(), [0.5, 0.5, 0.5])))
    sg.save(scene, path)
    return path


def test_a_saved_scene(saved, tmp_path, capsys):
    assert main(["export", str(saved), str(tmp_path / "a.glb")]) == 0
    assert "wrote" in capsys.readouterr().err
    assert "ball" in sg.load_scene(tmp_path / "a.glb")


def test_refused(saved, tmp_path, capsys):
    refused(["export", saved, tmp_path / "a.fbx"], capsys, "a.fbx must end in .glb or .ply")
    refused(["export", saved, tmp_path / "a.glb", "--points"], capsys, "must end in .ply")
    refused(["export", tmp_path, tmp_path / "a.glb"], capsys, "is not a run folder")
    refused(["export", saved, tmp_path / "a.glb", "--level", "2"], capsys, "level", "got 2.0")
    refused(["export", saved, tmp_path / "a.glb", "--refine", "2"], capsys, "of a run folder")


def test_a_run_whose_data_are_far_from_the_origin(saved, tmp_path, capsys):
    """Places are those of the data again."""
    trimesh = pytest.importorskip("trimesh")
    data = write_ball(tmp_path / "data", {"train": 1})
    run = open_run(tmp_path / "run")
    run.save_config(sg.preset("tiny"), data=str(data), preset="tiny", origin=[5e6, 3e6, 0.25])
    sg.save(summarise_cameras(sg.load_data(data)), run.folder / "cameras.sg")
    saved.rename(run.folder / "scene.sg")
    assert main(["export", str(run.folder), str(tmp_path / "a.ply")]) == 0
    vertices = trimesh.load(tmp_path / "a.ply").vertices
    distances = np.linalg.norm(vertices - [5e6, 3e6, 0.25], axis=1)
    assert np.max(np.abs(distances - 1)) < 1e-5
    refused(["export", run.folder, tmp_path / "none" / "a.ply"], capsys, "there is no folder")


@pytest.mark.slow
def test_a_run(tmp_path, capsys):
    """Of a run whose saved scene is a cloud that has a surface."""
    for name in ("skimage", "fast_simplification", "xatlas"):
        pytest.importorskip(name)
    data = write_ball(tmp_path / "data", {"train": 4, "val": 1, "test": 2})
    run = tmp_path / "run"
    assert main(["fit", str(data), "--out", str(run), "--steps", "2", *TINY]) == 0
    out = tmp_path / "a.glb"
    # A network that has hardly been fitted.
    refused(["export", run, out, *SMALL, "--box", *"-1 -1 -1 1 1 1".split()], capsys, "no surface")
    blob = sg.fields.GaussianBlob([0.0, 0, 0], 0.3, 300.0, [0.8, 0.4, 0.2])
    volume = sg.Volume(blob, bounds=sg.Box([-1.0] * 3, [1.0] * 3))
    sg.save(sg.Scene(sg.Group(field=volume)), run / "scene.sg")
    assert main(["export", str(run), str(out), *SMALL]) == 0
    surface = sg.load_scene(out)["field"]
    assert len(surface.shape.faces) <= 400 and max(surface.shader.texels.shape) == 64
    # In 8 bits, in linear light.
    expected = [((x + 0.055) / 1.055) ** 2.4 for x in (0.8, 0.4, 0.2)]
    assert np.max(np.abs(surface.shader.texels - np.array(expected))) < 0.01
    refused(["export", run, tmp_path / "a.ply", "--points", "--refine", 2], capsys, "points cannot")
    with warnings.catch_warnings():
        # Outlines of so coarse a mesh have many triangles in a pixel.
        warnings.filterwarnings("ignore", ".*rays meet more")
        assert main(["export", str(run), str(out), *SMALL, "--refine", "2"]) == 0
    assert "step       2/2" in capsys.readouterr().err
    moved = sg.load_scene(out)["field"]
    assert np.any(moved.shape.vertices != surface.shape.vertices)
    assert np.any(moved.shader.texels != surface.shader.texels)


@pytest.mark.slow
def test_a_run_in_all_of_space_is_refined_where_it_is(tmp_path):
    """A volume that is contracted and moved, beside pictures of the ball that it shows."""
    pytest.importorskip("skimage")
    pytest.importorskip("fast_simplification")
    trimesh = pytest.importorskip("trimesh")
    # In the volume's frame, about (0.4, 0, 0.4) with radius 1/2; contraction halves both.
    center, radius = np.array([10.2, 0.0, 0.2]), 0.25
    splits = {"train": 6, "test": 1}
    data = write_ball(tmp_path / "data", splits, size=64, center=center, radius=radius)
    blob = sg.fields.GaussianBlob([0.2, 0.0, 0.2], 0.0947, 3000.0, [0.5, 0.5, 0.5])
    volume = sg.Volume(blob, None, contraction=sg.encodings.Contraction(radius=1.0))
    moved = sg.Transformed(volume, sg.Similarity([10.0, 0.0, 0.0], scale=0.5))
    run = open_run(tmp_path / "run")
    run.save_config(sg.preset("tiny", bounds="contracted"), data=str(data), preset="tiny")
    white = [1.0, 1.0, 1.0]
    sg.save(sg.Scene(sg.Group(field=moved), background=white), run.folder / "scene.sg")
    sg.save(summarise_cameras(sg.load_data(data)), run.folder / "cameras.sg")
    options = "--resolution 32 --faces 400 --level 0.6 --box -1 -1 -1 1 1 1".split()
    colors = []
    for steps in ("0", "12"):
        out = tmp_path / f"{steps}.ply"
        assert main(["export", str(run.folder), str(out), *options, "--refine", steps]) == 0
        mesh = trimesh.load(out, process=False)
        places = np.linalg.norm(mesh.vertices - center, axis=1)
        assert np.max(np.abs(places - radius)) < 0.01
        colors.append(np.mean(mesh.visual.vertex_colors[:, :3], axis=0))
    # Towards those of the pictures, which show the mesh where it is.
    assert np.all((colors[1] - colors[0]) * (np.array(COLOR) - colors[0]) > 0)
