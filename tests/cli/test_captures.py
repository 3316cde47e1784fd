"""Captures from the folder to the film by one command, and what the messages name."""

import json
import pathlib

import imageio.v3 as iio
import numpy as np
import pytest
from PIL import Image

import scenegraph as sg
from scenegraph.cli import main
from scenegraph.io import read_json, write_picture
from scenegraph.runs import open_run, PathContext, PathRequest, PATHS, summarise_cameras
from scenegraph.settings import DataSettings
from support.blender_folder import eyes, look_at
from support.colmap_folder import write_text
from support.command_line import refused
from support.transforms_folder import frames, noise, write_transforms


SMALL = "--preset tiny --batch-size 32 --width 8 --depth 2 --view-width 4 --samples 4 4 --steps 2"
LENS = dict(camera_model="PINHOLE", fl_x=20.0, fl_y=20.0, cx=8.0, cy=6.0, w=16, h=12)


def fit(*arguments: object) -> int:
    return main([str(x) for x in ("fit", *arguments, *SMALL.split())])


def write_capture(folder: pathlib.Path, count: int = 10) -> pathlib.Path:
    return write_transforms(folder, LENS | {"frames": frames(count)}, [(16, 12)] * count)


@pytest.mark.slow
def test_missing_pictures_by_the_flag_that_the_message_names(tmp_path, capsys):
    data, run = write_capture(tmp_path / "data"), tmp_path / "run"
    for name in "bi":
        (data / "images" / f"{name}.png").unlink()
    parts = ("2 of 10 picture files", "2 missing: b.png, i.png", "--skip-missing")
    refused(["fit", data, "--out", run, *SMALL.split()], capsys, *parts)
    assert not run.exists()
    assert fit(data, "--out", run, "--skip-missing") == 0
    said = " ".join("".join(capsys.readouterr()).split())
    assert "1 of 8 pictures are left out" in said and "test: 1 of 2 pictures are left out" in said
    assert len(read_json(run / "metrics.json")["per_image"]) == 1
    assert iio.imread(run / "turntable.gif").ndim == 4
    assert "goes " in said and "of the nearest training picture" in said
    assert "## Training pictures" in (run / "metrics.md").read_text()
    # A picture that is lost since: named, and left out.
    (data / "images" / "c.png").unlink()
    assert main(["eval", str(run), "--skip-missing"]) == 0
    assert read_json(run / "metrics.json")["training"]["pictures"] == 7
    (data / "images" / "a.png").unlink()
    refused(["eval", run], capsys, "No picture is left")


@pytest.mark.slow
def test_colmap_masks_and_held_out_pictures(tmp_path, capsys):
    data, run = tmp_path / "data", tmp_path / "run"
    images, names = [], [f"{index}.jpg" for index in range(6)]
    (data / "images").mkdir(parents=True)
    (data / "masks").mkdir()
    mask = np.zeros((12, 16, 3), np.uint8)
    mask[3:] = 255
    for index, (name, eye) in enumerate(zip(names, eyes(6), strict=True)):
        Image.fromarray(noise(index, 16, 12)).save(data / "images" / name)
        write_picture(data / "masks" / f"{name}.png", mask)
        images.append((index, *colmap_pose(look_at(eye)), 1, name, []))
    cameras = [(1, "SIMPLE_RADIAL", 16, 12, [20.0, 8.0, 6.0, 0.01])]
    write_text(data / "sparse" / "0", cameras, images, [])
    assert fit(data / "sparse" / "0", "--out", run, "--held-out", "1", "4.jpg") == 0
    said = " ".join("".join(capsys.readouterr()).split())
    assert "masks of 4 of 4 pictures leave out 25.0 % of all pixels" in said
    metrics = read_json(run / "metrics.json")
    assert [x["name"] for x in metrics["per_image"]] == ["1.jpg", "4.jpg"]
    assert "pixels that count" in metrics["protocol"]["masks"]
    # The score is that of the pixels that count.
    scene = sg.load(run)
    views = sg.load_data(data, "test", held_out=["1", "4"])
    image = np.asarray(sg.render(scene, views.camera(0)).rgb)
    error = (image - np.asarray(views.image(0).rgb))[3:]
    expected = -10 * np.log10(np.mean(error**2))
    assert metrics["per_image"][0]["psnr"] == pytest.approx(expected, abs=1e-3)


def colmap_pose(pose: np.ndarray) -> tuple[list[float], list[float]]:
    """Quaternion and translation of camera from world, in COLMAP's axes."""
    turn = np.array([[1.0, 0, 0], [0, 0, 1], [0, -1, 0]])
    rotation = (turn.T @ pose[:3, :3] * [1, -1, -1]).T
    w = 0.5 * np.sqrt(max(1 + np.trace(rotation), 1e-12))
    skew = rotation - rotation.T
    quaternion = [w, *(np.array([skew[2, 1], skew[0, 2], skew[1, 0]]) / (4 * w))]
    return quaternion, (-rotation @ turn.T @ pose[:3, 3]).tolist()


def test_settings_of_other_formats_are_refused(tmp_path):
    (tmp_path / "transforms_train.json").write_text(json.dumps({"frames": []}))
    with pytest.raises(ValueError, match="`held_out` is for data of which no file has the splits"):
        DataSettings(held_out=("3",)).load(tmp_path)


def test_films_of_captures_are_upright_and_near(tmp_path):
    """A world that lies on its side: the default path is a loop, with the cameras' upwards."""
    side = np.array([[0, 0, 1, 0], [1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 0, 1.0]])
    listed = [
        frame | {"transform_matrix": (side @ np.array(frame["transform_matrix"])).tolist()}
        for frame in frames(10)
    ]
    data = write_transforms(tmp_path, LENS | {"frames": listed}, [(16, 12)] * 10)
    memory = summarise_cameras(sg.load_data(data))
    known = PathContext(open_run("none"), memory)
    assert known.usual_path == "loop"
    assert np.degrees(np.arccos(min(1.0, float(memory["up"] @ side[:3, 2])))) < 1
    turned = known.turned((0.0, 0.0, -2.0))
    np.testing.assert_allclose(turned.place[1], [0, 0, -1])
    for name in ("loop", "orbit", "ellipse"):
        for camera in PATHS[name](known, PathRequest(frames=4)):
            assert abs(float(camera.pose.linear()[:, 0] @ memory["up"])) < 1e-4
    with pytest.raises(ValueError, match="`up` must be a finite direction"):
        PathRequest(up=(0.0, 0.0, 0.0))


def test_unknown_paths_list_the_others(tmp_path, capsys):
    data = write_capture(tmp_path / "data")
    run = open_run(tmp_path / "run")
    run.folder.mkdir()
    sg.save(summarise_cameras(sg.load_data(data)), run.folder / "cameras.sg")
    from scenegraph.runs import find_cameras

    with pytest.raises(ValueError, match="there is no path 'lop'; did you mean 'loop'.*orbit"):
        find_cameras(run, PathRequest("lop"))
