"""Data of every format, from the folder to the film."""

import pathlib

import imageio.v3 as iio
import numpy as np
import pytest

import scenegraph as sg
from scenegraph.cli import main
from scenegraph.io import read_json, read_picture, write_json
from scenegraph.runs import open_run, PathContext, PathRequest, PATHS, summarise_cameras
from scenegraph.settings import NOTES, PRESETS
from support.blender_folder import write_ball
from support.command_line import refused
from support.llff_folder import facing_poses, inward_poses, write_llff


SMALL = "--batch-size 32 --width 8 --depth 2 --view-width 4 --samples 4 4 --log-every 1 --steps 2"


@pytest.fixture(scope="module")
def blender(tmp_path_factory) -> pathlib.Path:
    counts = {"train": 3, "val": 1, "test": 2}
    return write_ball(tmp_path_factory.mktemp("blender"), counts, size=24)


@pytest.fixture(scope="module")
def multiscale(blender, tmp_path_factory) -> pathlib.Path:
    """What the command line makes of the Blender data."""
    out = tmp_path_factory.mktemp("data") / "multiscale"
    assert main(["convert", "multiscale", str(blender), str(out), "--levels", "2"]) == 0
    return out


def write_noise(folder: pathlib.Path, poses: np.ndarray) -> pathlib.Path:
    shape = len(poses), 12, 16, 3
    pictures = np.random.default_rng(0).integers(0, 256, shape, dtype=np.uint8)
    return write_llff(folder, poses, pictures)


# --- Fitting, scoring, filming


def check_run(run: pathlib.Path, shapes: list[tuple[int, int]]) -> dict:
    """Pictures of these sizes were scored, and the film shows something."""
    metrics = read_json(run / "metrics.json")
    assert np.isfinite(metrics["psnr"]) and len(metrics["per_image"]) == len(shapes)
    for index, (height, _) in enumerate(shapes):
        assert read_picture(run / "pictures" / f"test_{index:03d}.png").shape[0] == height
    film = iio.imread(run / "turntable.gif")
    assert film.ndim == 4 and len(film) > 1
    return metrics


@pytest.mark.slow
def test_multiscale_from_pictures_to_film(multiscale, tmp_path):
    run = tmp_path / "run"
    arguments = ["fit", multiscale, "--out", run, "--preset", "mipnerf-multiscale", *SMALL.split()]
    assert main([str(argument) for argument in arguments]) == 0
    metrics = check_run(run, [(24, 24), (12, 12)] * 2)
    assert [scale["size"] for scale in metrics["scales"]] == [[24, 24], [12, 12]]
    assert metrics["per_image"][3]["name"] == "images_test/001_d1.png"
    assert read_json(run / "config.json")["fit"]["data"]["near"] is None
    # What was scored is what the saved scene shows at that size.
    views, scene = sg.load_data(multiscale, "test", straight_alpha=True), sg.load(run)
    image = sg.render(scene, views.camera(3))
    score = float(sg.psnr(image.rgb, views.image(3).rgb))
    assert score == pytest.approx(metrics["per_image"][3]["psnr"], 1e-4)
    assert main(["eval", str(run), "--split", "val"]) == 0
    assert read_json(run / "metrics.json")["protocol"]["split"] == "val"


@pytest.mark.slow
def test_forward_facing_from_pictures_to_film(tmp_path):
    folder, run = write_noise(tmp_path / "data", facing_poses(9)), tmp_path / "run"
    flags = ["--preset", "mipnerf-llff", "--downscale", "1", *SMALL.split()]
    assert main(["fit", str(folder), "--out", str(run), *flags]) == 0
    check_run(run, [(12, 16)] * 2)
    integrator, beam = sg.load(run)["field.integrator"], sg.rays.CylinderBeam
    assert isinstance(integrator.beam, beam)
    memory = sg.load(run / "cameras.sg")
    assert len(memory["data"]) == 120 and memory["data"][0].published
    still = tmp_path / "still.png"
    assert main(["render", str(run), "--path", "data", "--frames", "4", "--out", str(still)]) == 0
    expected = np.round(255 * np.clip(sg.render(sg.load(run), memory["data"][0]).rgb, 0, 1))
    assert np.max(np.abs(read_picture(still) - expected)) <= 1


@pytest.mark.slow
def test_inward_cameras_from_pictures_to_film(tmp_path):
    folder, run = write_noise(tmp_path / "data", inward_poses(9)), tmp_path / "run"
    flags = ["--preset", "tiny", "--spherify", "--hold-every", "4", *SMALL.split()]
    assert main(["fit", str(folder), "--out", str(run), *flags]) == 0
    check_run(run, [(12, 16)] * 3)
    assert not isinstance(sg.load(run / "cameras.sg")["camera"], sg.cameras.NDCCamera)


def test_a_path_that_blender_data_do_not_have(blender):
    known = PathContext(open_run("none"), summarise_cameras(sg.load_blender(blender)))
    assert known.usual_path == "orbit"
    assert len(PATHS["orbit"](known, PathRequest(frames=3))) == 3
    with pytest.raises(ValueError, match="no path of its own; pass --path orbit"):
        PATHS["data"](known, PathRequest(frames=3))


# --- Which format


def test_unknown_folder_tells_what_was_looked_for(tmp_path, capsys):
    parts = ["metadata.json", "poses_bounds.npy", "transforms_*.json", str(tmp_path)]
    refused(["fit", tmp_path, "--out", tmp_path / "run"], capsys, *parts)
    refused(["fit", tmp_path / "none", "--out", tmp_path / "run"], capsys, "no folder", "none")
    (tmp_path / "sparse" / "0").mkdir(parents=True)
    (tmp_path / "sparse" / "0" / "cameras.bin").touch()
    # A model of COLMAP is one of the formats.
    refused(["fit", tmp_path, "--out", tmp_path / "run"], capsys, "cameras.bin is cut")
    assert not (tmp_path / "run").exists()


def test_the_file_in_place_of_the_folder(blender, tmp_path, capsys):
    run = tmp_path / "run"
    listing = blender / "transforms_train.json"
    arguments = ["fit", listing, "--out", run, "--preset", "tiny", *SMALL.split(), "--steps", "0"]
    assert main([str(argument) for argument in arguments]) == 0
    assert read_json(run / "config.json")["data"] == str(blender)
    assert sg.load_data(listing, "test").frames == 2
    assert sg.data.find_splits(listing) == sg.data.find_splits(blender)
    run = tmp_path / "other"
    refused(["fit", listing.parent / "train" / "r_0.png", "--out", run], capsys, "is a file")
    # Which of two formats is meant is not guessed.
    write_json(tmp_path / "transforms_train.json", {})
    write_json(tmp_path / "transforms.json", {})
    reason = "is a file; pass the data folder that it is in, which would be read by its"
    refused(["fit", tmp_path / "transforms.json", "--out", run], capsys, reason)


@pytest.mark.parametrize("flag, name", [("--spherify", "spherify"), ("--no-ndc", "ndc")])
def test_settings_of_another_format(blender, tmp_path, capsys, flag, name):
    arguments = ["fit", blender, "--out", tmp_path / "run", flag]
    refused(arguments, capsys, f"`{name}` is for LLFF data", "Blender data")


# --- convert


def test_conversion_shows_how_far_it_is(multiscale, blender, tmp_path, capsys):
    assert (
        main(["convert", "multiscale", str(blender), str(tmp_path / "out"), "--levels", "1"]) == 0
    )
    shown = capsys.readouterr().err
    assert "100%" in shown and f"wrote {tmp_path / 'out'}" in shown
    assert set(read_json(multiscale / "metadata.json")) == {"train", "val", "test"}


def test_conversion_refuses(blender, tmp_path, capsys):
    (tmp_path / "mine.txt").write_text("precious")
    command = ["convert", "multiscale", blender]
    refused([*command, tmp_path], capsys, "is not empty")
    refused([*command, tmp_path / "out", "--levels", "9"], capsys, "24x24", "8 times")
    refused(["convert", "multiscale", tmp_path, tmp_path / "out"], capsys, "transforms_train.json")
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


# --- presets


def test_presets_are_listed_as_flags(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    assert main(["presets"]) == 0
    shown = capsys.readouterr().out
    parts = [part.split("│") for part in shown.splitlines() if part.startswith("│")]
    rows: dict[str, list[str]] = {}
    for _, left, right, _ in parts:
        name = left.strip() if left.strip() in PRESETS else name
        rows.setdefault(name, []).append(right.strip())
    assert set(rows) == set(PRESETS) == set(NOTES)
    for name, (base, _) in NOTES.items():
        if base is None:
            continue
        assert rows[name][0] == f"as {base}, but" and rows[name][1].startswith("--")
    assert rows["mipnerf-multiscale-noloss"][1:] == ["--no-area-weights"]
    assert "--resolutions 16 32 64 128 256 512" in rows["fast-gpu"]


def test_listed_flags_make_the_preset(capsys, monkeypatch):
    """What the table says, typed after the name of the base, gives the preset."""
    from scenegraph.cli._fit import Fit
    from scenegraph.cli._presets import _flag
    from scenegraph.settings import differences

    seen = []
    monkeypatch.setattr(Fit, "main", lambda command: seen.append(command.config))
    for name, (base, _) in NOTES.items():
        flags = [part for pair in differences(name, base).items() for part in _flag(*pair).split()]
        assert main(["fit", "--preset", base or name, *flags]) == 0
        assert seen[-1] == PRESETS[name]


@pytest.mark.slow
def test_transforms_from_pictures_to_film(tmp_path):
    """A listing of nerfstudio's kind, made from one of Blender's."""
    folder, run = tmp_path / "data", tmp_path / "run"
    write_ball(folder, {"train": 6})
    listing = read_json(folder / "transforms_train.json")
    for path in folder.glob("transforms_*.json"):
        path.unlink()
    write_json(folder / "transforms.json", listing)
    flags = ["--preset", "tiny", "--hold-every", "2", *SMALL.split()]
    assert main(["fit", str(folder), "--out", str(run), *flags]) == 0
    held_out = sg.load_data(folder, "test", hold_every=2)
    assert len(read_json(run / "metrics.json")["per_image"]) == held_out.frames > 1
