"""Files of a run that hold values of wrong types are refused by the name of the key."""

import json
import pathlib
import shutil

import jax
import jax.numpy as jnp
import pytest

import scenegraph as sg
from scenegraph.cli import main
from scenegraph.io import FileError
from scenegraph.io._kinds import check_kinds
from scenegraph.runs import open_run
from scenegraph.settings import make_scene
from support.blender_folder import write_ball
from support.command_line import refused


SMALL = {"width": 8, "depth": 2, "view_width": 4, "samples": (4, 4)}
CONFIG = sg.preset("tiny", bounds="none", near=2.0, far=6.0, **SMALL)
CAMERA = sg.PerspectiveCamera.look_at([0, -3, 0], [0, 0, 0], [0, 0, 1], 0.7, 4, 4)
MEMORY = {"camera": CAMERA, "target": jnp.zeros(3), "up": jnp.eye(3)[2]}
NOT_OF_ANY_KEY = [None, 3, -1.5, True, "text", [], [1, "a"], {}, {"a": [None]}]


@pytest.fixture(scope="module")
def scored(tmp_path_factory) -> pathlib.Path:
    data = tmp_path_factory.mktemp("data") / "ball"
    data.mkdir()
    write_ball(data, {"train": 1, "val": 1, "test": 1})
    run = open_run(tmp_path_factory.mktemp("runs") / "run")
    run.save_config(CONFIG, data=str(data), preset="tiny")
    sg.save(make_scene(CONFIG, None, key=jax.random.key(0)), run.folder / "scene.sg")
    assert main(["eval", str(run.folder)]) == 0
    return run.folder


@pytest.fixture
def run(scored, tmp_path) -> pathlib.Path:
    return pathlib.Path(shutil.copytree(scored, tmp_path / "run"))


def put(path: pathlib.Path, place: str, value) -> None:
    """Changes a value of a JSON file, at a place such as `a.0.b`."""
    content = json.loads(path.read_text())
    *way, last = [int(x) if x.isdigit() else x for x in place.split(".")]
    at = content
    for name in way:
        at = at[name]
    at[last] = value
    path.write_text(json.dumps(content))


@pytest.mark.parametrize(
    ("place", "value", "named"),
    [
        ("psnr", "high", "`psnr` must be a number or null; got 'high'"),
        ("ssim_8bit", [1], "`ssim_8bit`"),
        ("protocol", 3, "`protocol` must be an object"),
        ("protocol.split", ["test"], "`protocol.split` must be a text"),
        ("protocol.data", 5, "`protocol.data` must be a text or null"),
        ("protocol.background", {}, "`protocol.background`"),
        ("protocol.of", "one", "`protocol.of` must be a whole number"),
        ("scales", {}, "`scales` must be a list"),
        ("scales.0", None, "`scales[0]` must be an object"),
        ("scales.0.scale", 1, "`scales[0].scale` must be a text"),
        ("scales.0.mean", [], "`scales[0].mean` must be an object"),
        ("scales.0.mean.psnr", "30", "`scales[0].mean.psnr`"),
        ("missing", ["flip"], "`missing` must be an object"),
        ("missing.flip", None, "`missing.flip` must be a text"),
    ],
)
def test_table_names_the_key(run, capsys, place, value, named):
    put(run / "metrics.json", place, value)
    refused(["table", run], capsys, "metrics.json", named)


@pytest.mark.parametrize("command", ["table", "eval", "render", "export", "fit"])
@pytest.mark.parametrize(
    ("place", "value", "named"),
    [
        ("data", 3, "`data` must be a text or null; got 3"),
        ("preset", ["tiny"], "`preset`"),
        ("fingerprint", [1], "`fingerprint` must be an object"),
        ("fingerprint", {"train": {"pictures": "3"}}, "`fingerprint.train.pictures`"),
        ("fit", 3, "`fit` must be an object"),
        ("fit.seed", "one", "does not hold the settings"),
        ("fit.method", 5, "does not hold the settings"),
    ],
)
def test_all_commands_name_the_key_of_settings(run, tmp_path, capsys, command, place, value, named):
    put(run / "config.json", place, value)
    arguments = {
        "export": [tmp_path / "a.glb"],
        "fit": ["--resume", "--out", run],
    }.get(command, [])
    run = [] if command == "fit" else [run]
    refused([command, *run, *arguments], capsys, "config.json", named)


@pytest.mark.parametrize("command", ["render", "export", "eval"])
@pytest.mark.parametrize("content", [sg.Sphere(), {"a": 1}, [1], None, 3])
def test_scenes_that_are_none(run, tmp_path, capsys, command, content):
    sg.save(MEMORY | {"poses": jnp.eye(4)[None]}, run / "cameras.sg")
    sg.save(content, run / "scene.sg")
    arguments = {"export": [tmp_path / "a.glb"]}.get(command, [])
    refused([command, run, *arguments], capsys, "holds no scene")
    if command != "eval":
        refused([command, run / "scene.sg", *arguments], capsys, "scene.sg holds no scene")


@pytest.mark.parametrize(
    ("memory", "named"),
    [
        ([1], "does not hold what a run remembers"),
        ({}, "`camera` is missing"),
        (MEMORY | {"camera": 3}, "`camera`"),
        (MEMORY | {"target": "there"}, "`target`"),
        (MEMORY | {"up": jnp.zeros(2)}, "`up`"),
        (MEMORY | {"poses": jnp.zeros((4, 4))}, "`poses`"),
        (MEMORY | {"data": [3]}, "`data`"),
        (MEMORY | {"is_capture": [1, 2]}, "`is_capture`"),
    ],
)
def test_cameras_that_are_none(run, capsys, memory, named):
    sg.save(memory, run / "cameras.sg")
    refused(["render", run], capsys, "cameras.sg", named)


@pytest.mark.parametrize("value", NOT_OF_ANY_KEY)
def test_camera_paths_of_wrong_types(run, capsys, value):
    sg.save(MEMORY, run / "cameras.sg")
    for content in (value, {"cameras": value}, {"camera_path": value}, {"cameras": [value]}):
        (run / "path.json").write_text(json.dumps(content))
        refused(["render", run, "--path", run / "path.json"], capsys, "path.json")


def test_training_pictures_of_a_wrong_type_are_dropped(run):
    put(run / "metrics.json", "training", {"size": "large", "outliers": 3})
    assert main(["eval", str(run)]) == 0
    assert "training" not in json.loads((run / "metrics.json").read_text())


def test_kinds():
    kind = {"a": float, "b?": [int | None], "c?": {str: bool}}
    for value in ({"a": 1}, {"a": 0.5, "b": [1, None]}, {"a": 2, "c": {"x": True}, "d": object()}):
        check_kinds(value, kind, "x.json")
    for value, said in (
        ([], "x.json: its content must be an object"),
        ({}, "`a` is missing"),
        ({"a": True}, "`a` must be a number; got True"),
        ({"a": 1, "b": [0.5]}, r"`b\[0\]` must be a whole number or null; got 0.5"),
        ({"a": 1, "c": {"x": 1}}, "`c.x` must be true or false"),
    ):
        with pytest.raises(FileError, match=said):
            check_kinds(value, kind, "x.json")
