"""The command line, in this process."""

import json
import pathlib
import shutil
import signal
import subprocess
import sys

import equinox as eqx
import imageio.v3 as iio
import jax
import numpy as np
import pytest

import scenegraph as sg
from scenegraph.cli import main
from scenegraph.cli._fit import Fit
from scenegraph.cli._time import process_age, seconds_of
from scenegraph.fitting import JsonLines
from scenegraph.io import read_json, read_picture
from scenegraph.runs import read_log
from scenegraph.settings import preset
from support.blender_folder import ball_picture, eyes, look_at, write_ball, write_split
from support.command_line import fit_pictures, refused
from support.helpers import assert_close


SMALL = (
    "--preset tiny --batch-size 32 --width 8 --depth 2 --view-width 4 --samples 4 4 --log-every 1"
).split()


@pytest.fixture(scope="module")
def data(tmp_path_factory) -> pathlib.Path:
    return write_ball(tmp_path_factory.mktemp("data"), {"train": 4, "val": 1, "test": 2})


@pytest.fixture(scope="module")
def fitted(data, tmp_path_factory) -> pathlib.Path:
    """A run folder after three steps. Tests that change it take a copy."""
    return fit_pictures(tmp_path_factory.mktemp("runs"), data, 3, SMALL)


@pytest.fixture
def copy(fitted, tmp_path) -> pathlib.Path:
    return pathlib.Path(shutil.copytree(fitted, tmp_path / "run"))


@pytest.fixture
def parsed(monkeypatch):
    """What `fit` would do with its arguments, without doing it."""

    def parse(*arguments: str) -> Fit:
        seen = []
        monkeypatch.setattr(Fit, "main", lambda command: seen.append(command))
        assert main(["fit", *arguments]) == 0
        return seen[0]

    return parse


def log_of(run: pathlib.Path) -> list[tuple[int, float]]:
    """Steps and losses in the log."""
    lines = read_log(run / "metrics.jsonl")
    return [(line["step"], line["loss"]) for line in lines if "loss" in line]


# --- fit


def test_run_folder_holds_what_it_should(fitted):
    names = {path.name for path in fitted.iterdir()}
    assert names >= {"config.json", "scene.sg", "checkpoints", "metrics.jsonl", "metrics.json"}
    assert names >= {"pictures", "curve.png", "turntable.gif"}
    assert [step for step, _ in log_of(fitted)] == [1, 2, 3]
    assert not list(fitted.rglob("*.part"))


def test_metrics(fitted):
    metrics = read_json(fitted / "metrics.json")
    assert metrics.keys() >= {"psnr", "ssim", "psnr_8bit", "ssim_8bit", "per_image", "protocol"}
    assert [image["name"] for image in metrics["per_image"]] == ["./test/r_0", "./test/r_1"]
    for name in ("psnr", "ssim", "psnr_8bit", "ssim_8bit"):
        assert np.isfinite(metrics[name])
        assert_close(metrics[name], np.mean([image[name] for image in metrics["per_image"]]))
    assert metrics["protocol"]["split"] == "test" and metrics["protocol"]["pictures"] == 2


def test_saved_scene_renders_what_was_scored(fitted, data):
    scene, views = sg.load(fitted), sg.load_blender(data, "test")
    image = sg.render(scene, views.camera(1))
    score = float(sg.psnr(image.rgb, views.image(1).rgb))
    assert score == pytest.approx(read_json(fitted / "metrics.json")["per_image"][1]["psnr"], 1e-4)


def test_pictures_show_the_truth_on_the_right(fitted, data):
    pair = read_picture(fitted / "pictures" / "test_001.png")
    truth = np.round(255 * np.asarray(sg.load_blender(data, "test").image(1).rgb))
    assert pair.shape[0] == 16
    assert_close(pair[:, -16:], truth, 0, 1)
    film = iio.imread(fitted / "turntable.gif")
    assert film.ndim == 4 and len(film) > 1


def test_flags_of_the_settings_are_kept(fitted):
    settings = read_json(fitted / "config.json")
    fit = settings["fit"]
    assert fit["steps"] == 3 and fit["training"]["batch_size"] == 32
    assert fit["field"] == "mlp" and fit["method"]["samples"] == [4, 4]
    assert settings["preset"] == "tiny"


def test_flags_change_the_preset(parsed):
    flags = "--learning-rate 0.25 --background black --no-use-view --near 1 --samples 3 4 5"
    config = parsed("--preset", "mipnerf", *flags.split()).config
    changed = {"learning_rate": 0.25, "background": "black", "use_view": False, "near": 1.0}
    assert config == preset("mipnerf", **changed, samples=(3, 4, 5))


def test_fast_is_where_the_settings_start(parsed, tmp_path):
    command = parsed(str(tmp_path), "--max-time", "5m")
    assert command.config == preset("fast") and command.data == tmp_path
    assert command.max_time == "5m" and not command.resume


def test_profile_is_written_into_the_run(data, tmp_path):
    arguments = ["fit", str(data), "--out", str(tmp_path / "run"), "--steps", "16", "--profile"]
    assert main([*arguments, *SMALL]) == 0
    assert list((tmp_path / "run" / "profile").rglob("*.xplane.pb"))


def test_next_free_run_folder(data, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs" / "001").mkdir(parents=True)
    assert main(["fit", str(data), "--steps", "0", *SMALL]) == 0
    assert (tmp_path / "runs" / "002" / "scene.sg").exists()


def test_time_limit_ends_the_fit(data, tmp_path):
    """So early that it has learned nothing, which the exit code says."""
    arguments = ["fit", data, "--out", tmp_path / "run", "--max-time", "1s", *SMALL]
    assert main([str(argument) for argument in arguments]) == 3
    assert 1 <= log_of(tmp_path / "run")[-1][0] < 20_000


@pytest.mark.parametrize("target, last", [("1", 2), pytest.param("99", 6, marks=pytest.mark.slow)])
def test_fit_ends_when_it_is_good_enough(data, tmp_path, target, last):
    """The held-out pictures are looked at every other step."""
    flags = f"--steps 6 --eval-every 2 --target-psnr {target}".split()
    assert main(["fit", str(data), "--out", str(tmp_path / "run"), *flags, *SMALL]) == 0
    assert log_of(tmp_path / "run")[-1][0] == last
    looks = [x for x in read_log(tmp_path / "run" / "metrics.jsonl") if "test_psnr" in x]
    assert [x["step"] for x in looks] == list(range(2, last + 1, 2))
    assert all((x["test_psnr"] >= float(target)) == (target == "1") for x in looks)


@pytest.mark.slow
def test_tensorboard_gets_numbers_and_pictures(data, tmp_path):
    pytest.importorskip("tensorboardX", reason="needs tensorboardX: scenegraph[tensorboard]")
    run = tmp_path / "run"
    flags = ["--steps", "3", "--eval-every", "2", "--tensorboard", *SMALL]
    assert main(["fit", str(data), "--out", str(run), *flags]) == 0
    (events,) = (run / "tensorboard").iterdir()
    told = events.read_bytes()
    # Two levels at three steps; one picture.
    assert told.count(b"train_losses_1") == told.count(b"learning_rate") == 3
    assert told.count(b"test_pred_color") == told.count(b"test_target") == 1


def test_tensorboard_that_is_not_there(data, tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "tensorboardX", None)
    arguments = ["fit", data, "--out", tmp_path / "run", "--tensorboard", *SMALL]
    refused(arguments, capsys, "--tensorboard needs `pip install scenegraph[tensorboard]`")
    assert not (tmp_path / "run").exists()


GRID = "--batch-size 32 --width 8 --resolutions 4 8 --capacity 512 --occupancy 8 --candidates 12"


def test_fast_fit_from_the_command_line(data, tmp_path, capsys):
    """Fitted, saved, loaded, resumed and evaluated like the others."""
    run, flags = tmp_path / "run", [*GRID.split(), "--log-every", "1", "--save-every", "2"]
    assert main(["fit", str(data), "--out", str(run), "--steps", "20", *flags]) == 0
    settings, scene = read_json(run / "config.json"), sg.scene.thaw(sg.load(run))
    assert settings["preset"] == "fast" and settings["fit"]["method"]["resolutions"] == [4, 8]
    known = scene.root.children["field"].child.occupancy.thickness
    # The pictures say where the box is empty; the rest has been looked at again.
    assert known.shape == (8, 8, 8) and np.any(known < 0) and np.any(known > 0)
    assert len(np.unique(known)) > 2
    assert main(["fit", "--out", str(run), "--resume", "--steps", "22"]) == 0
    assert [step for step, _ in log_of(run)] == list(range(1, 23))
    score = read_json(run / "metrics.json")["per_image"][0]["psnr"]
    views = sg.load_blender(data, "test")
    image = sg.render(sg.load(run), views.camera(0))
    assert float(sg.psnr(image.rgb, views.image(0).rgb)) == pytest.approx(score, 1e-4)


# --- fit --resume


def test_resumed_fit_goes_on_from_its_checkpoint(copy, fitted):
    arguments = ["fit", "--out", str(copy), "--resume", "--steps", "5", "--eval-every", "4"]
    assert main(arguments) == 0
    assert [step for step, _ in log_of(copy)] == [1, 2, 3, 4, 5]
    assert log_of(copy)[:3] == log_of(fitted)
    held_out = [line for line in read_log(copy / "metrics.jsonl") if "test_psnr" in line]
    assert {3, 4, 5} == {line["step"] for line in held_out}
    fit = read_json(copy / "config.json")["fit"]
    assert fit["steps"] == 5 and fit["method"]["width"] == 8


@pytest.mark.slow
def test_interrupted_and_resumed_is_the_same_as_never_stopped(
    fitted, data, tmp_path, monkeypatch, capsys
):
    def interrupt(log, progress):
        if progress.step == 3:
            raise KeyboardInterrupt
        return False

    run = tmp_path / "run"
    arguments = ["fit", str(data), "--out", str(run), "--steps", "3", "--save-every", "2", *SMALL]
    with monkeypatch.context() as patch:
        patch.setattr(JsonLines, "__call__", interrupt)
        assert main(arguments) == 130
    assert "interrupted" in capsys.readouterr().err
    assert main(["fit", "--out", str(run), "--resume"]) == 0
    assert "resuming at step 2" in capsys.readouterr().err
    assert eqx.tree_equal(sg.load(run), sg.load(fitted))
    assert log_of(run) == log_of(fitted)[2:]


def test_finished_fit_has_nothing_left_to_do(fitted, copy):
    assert main(["fit", "--out", str(copy), "--resume"]) == 0
    assert eqx.tree_equal(sg.load(copy), sg.load(fitted))
    assert log_of(copy) == log_of(fitted)


def test_run_that_has_moved_with_the_pictures_elsewhere(fitted, data, tmp_path, capsys):
    run, pictures = tmp_path / "far" / "run", tmp_path / "pictures"
    shutil.copytree(fitted, run)
    settings = read_json(run / "config.json")
    (run / "config.json").write_text(json.dumps({**settings, "data": "/nowhere/at/all"}))
    refused(["fit", "--out", run, "--resume", "--steps", "4"], capsys, "/nowhere/at/all")
    pathlib.Path(shutil.copytree(data, pictures))
    assert main(["fit", str(pictures), "--out", str(run), "--resume", "--steps", "4"]) == 0
    assert [step for step, _ in log_of(run)] == [1, 2, 3, 4]
    assert read_json(run / "config.json")["data"] == str(pictures)


@pytest.mark.slow
def test_run_that_has_moved_takes_its_own_data_along(data, tmp_path, capsys):
    run = tmp_path / "run"
    shutil.copytree(data, run / "data")
    settings = ["--out", str(run), "--steps", "1", *SMALL]
    assert main(["fit", *settings]) == 0
    assert read_json(run / "config.json")["data"] == "data"
    moved = str(run.rename(tmp_path / "moved"))
    assert main(["fit", "--out", moved, "--resume", "--steps", "2"]) == 0
    assert main(["eval", moved]) == 0 and f"data {moved}/data" in capsys.readouterr().err


@pytest.mark.slow
def test_settings_of_the_checkpoints(data, tmp_path):
    """The newest stay, and the one that did best on held-out pictures; all load as scenes."""
    run = tmp_path / "run"
    flags = "--steps 6 --save-every 1 --keep 2 --eval-every 2".split()
    assert main(["fit", str(data), "--out", str(run), *flags, *SMALL]) == 0
    looks = {x["step"]: x["test_psnr"] for x in read_log(run / "metrics.jsonl") if "test_psnr" in x}
    best = max(looks, key=lambda step: looks[step])
    names = sorted(path.name for path in (run / "checkpoints").iterdir())
    assert names == sorted({f"{best:08d}_psnr_{looks[best]:.4f}.sg", *names[-2:]})
    assert [int(name[:8]) for name in names[-2:]] == [5, 6]
    last = sg.load(run / "checkpoints" / names[-1])
    assert eqx.tree_equal(last, sg.load(run))


@pytest.mark.slow
@pytest.mark.parametrize(
    "name, code",
    [("SIGTERM", 143), ("SIGINT", 130), ("SIGHUP", 129)],
    ids=["terminated", "Ctrl-C", "hung up"],
)
def test_told_to_stop_it_saves_and_goes_on_later(
    fitted, data, tmp_path, monkeypatch, capsys, name, code
):
    """After the step at hand, whether or not a checkpoint is due; the log shows no trace of it."""

    def interrupt(log, progress):
        if progress.step == 2:
            signal.raise_signal(getattr(signal, name))
        return write(log, progress)

    run, write = tmp_path / "run", JsonLines.__call__
    with monkeypatch.context() as patch:
        patch.setattr(JsonLines, "__call__", interrupt)
        assert main(["fit", str(data), "--out", str(run), "--steps", "3", *SMALL]) == code
    last = capsys.readouterr().err.splitlines()[-1]
    assert f"stopped by {name} at step 2" in last and f"--out {run} --resume" in last
    assert not (run / "metrics.json").exists()
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
    assert main(["fit", "--out", str(run), "--resume"]) == 0
    assert eqx.tree_equal(sg.load(run), sg.load(fitted))
    assert log_of(run) == log_of(fitted)


def test_one_command_begins_and_goes_on(fitted, data, tmp_path, monkeypatch, capsys):
    """Ended before its folder is there, before a checkpoint is, and after that."""

    def interrupt(log, progress):
        if progress.step == last:
            raise KeyboardInterrupt
        return write(log, progress)

    run, write = tmp_path / "run", JsonLines.__call__
    command = ["fit", str(data), "--out", str(run), "--steps", "3", *SMALL, "--resume"]
    for last, begins in [(1, True), (2, True), (99, False)]:
        with monkeypatch.context() as patch:
            patch.setattr(JsonLines, "__call__", interrupt)
            assert main(command) == (0 if last == 99 else 130)
        said = capsys.readouterr().err
        assert (f"nothing is saved in {run} yet: the fit begins" in said) == begins
        assert ("resuming at step 1" in said) != begins
    assert eqx.tree_equal(sg.load(run), sg.load(fitted))
    assert log_of(run) == log_of(fitted)


def test_resuming_needs_a_folder(data, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    refused(["fit", data, "--resume"], capsys, "--resume needs --out")
    (tmp_path / "mine.txt").write_text("precious")
    reason = "is not the folder of a run; pass another --out"
    refused(["fit", data, "--out", tmp_path, "--resume"], capsys, reason)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_resuming_with_another_preset(copy, capsys):
    arguments = ["fit", "--out", copy, "--resume", "--preset", "fast"]
    refused(arguments, capsys, "was begun with --preset tiny", "leave --preset out")


def test_checkpoint_of_another_network_is_refused(copy, capsys):
    arguments = ["fit", "--out", copy, "--resume", "--steps", "5", "--width", "16"]
    reason = "field.field.network.trunk.0.weight is float32[8, 48] there and float32[16, 48] here"
    refused(arguments, capsys, "00000003_psnr", "belongs to another scene", reason)
    # The run is as good as before.
    assert read_json(copy / "config.json")["fit"]["method"]["width"] == 8


# --- fit refuses


HOLD = """
import pathlib, sys, time
from scenegraph.runs import open_run
with open_run(pathlib.Path(sys.argv[1])).locked():
    print("held", flush=True)
    time.sleep(600)
"""


@pytest.mark.parametrize("flags", [[], pytest.param(["--resume"], marks=pytest.mark.slow)])
def test_folder_of_a_fit_that_is_running(data, tmp_path, capsys, flags):
    """The lock ends with its process, however that ends."""
    run = tmp_path / "run"
    command = ["fit", str(data), "--out", str(run), "--steps", "0", *SMALL, *flags]
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(run)], stdout=subprocess.PIPE, text=True
    )
    with holder:
        try:
            assert holder.stdout is not None and holder.stdout.readline() == "held\n"
            refused(command, capsys, str(run), f"in use by another fit (process {holder.pid} on ")
            assert [path.name for path in run.iterdir()] == ["lock"]
        finally:
            holder.kill()
    assert main(command) == 0
    assert (run / "scene.sg").exists() and not (run / "lock").exists()


def test_folder_with_something_in_it(data, tmp_path, capsys):
    (tmp_path / "mine.txt").write_text("precious")
    refused(["fit", data, "--out", tmp_path, *SMALL], capsys, "is not empty", "--resume")
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_unknown_preset(data, tmp_path, capsys):
    arguments = ["fit", data, "--out", tmp_path / "run", "--preset", "mipnerv"]
    refused(arguments, capsys, "'mipnerv'", "did you mean 'mipnerf'")


@pytest.mark.parametrize(
    "flags, reason",
    [
        (["--preset", "tiny", "--samples", "0"], "--samples (`samples`) must be between 1"),
        (["--capacity", "1000"], "power of two"),
        (["--candidates", "0"], "--candidates (`candidates`) must be between 2"),
        (["--learning-rate", "0"], "must be positive"),
        (["--downscale", "99"], "cannot shrink"),
    ],
)
def test_impossible_settings_leave_nothing_behind(data, tmp_path, capsys, flags, reason):
    refused(["fit", data, "--out", tmp_path / "run", "--steps", "1", *flags], capsys, reason)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("limit", ["soon", "5 parsecs", "0s", "-3m", "1h30m"])
def test_bad_time_limit(data, tmp_path, capsys, limit):
    arguments = ["fit", data, "--out", tmp_path / "run", f"--max-time={limit}", *SMALL]
    refused(arguments, capsys, "--max-time", "90s, 5m or 2h", repr(limit))
    assert not (tmp_path / "run").exists()


def test_bad_data_folder_leaves_nothing_behind(tmp_path, capsys):
    refused(["fit", tmp_path / "none", "--out", tmp_path / "run"], capsys, "none")
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
def test_fit_that_explodes_saves_its_last_finite_scene(data, tmp_path, capsys):
    run = tmp_path / "run"
    arguments = ["fit", data, "--out", run, "--steps", "40", "--learning-rate", "1e38", *SMALL]
    refused(arguments, capsys, "network.", "is not finite", "Lower the learning rate", str(run))
    leaves = jax.tree.leaves(sg.load(run))
    assert all(np.isfinite(leaf).all() for leaf in leaves)


@pytest.mark.slow
def test_more_than_the_memory_holds(data, tmp_path, capsys):
    arguments = ["fit", data, "--out", tmp_path / "run", *SMALL, "--batch-size", str(2**31 - 1)]
    refused(arguments, capsys, "a step needs", "Lower --batch-size")


def test_place_that_cannot_be_written_to(data, tmp_path, capsys):
    (tmp_path / "file").write_text("not a folder")
    refused(["fit", data, "--out", tmp_path / "file" / "run", *SMALL], capsys, "file")


@pytest.mark.slow
def test_pictures_without_opacity_are_mentioned_once(tmp_path, capsys):
    poses = [look_at(eye) for eye in eyes(3)]
    for split in ("train", "test"):
        pictures = [ball_picture(pose, 16)[..., :3] for pose in poses]
        write_split(tmp_path, split, pictures, poses)
    assert main(["fit", str(tmp_path), "--out", str(tmp_path / "run"), "--steps", "1", *SMALL]) == 0
    assert capsys.readouterr().err.count("no opacity") == 1


@pytest.mark.parametrize("arguments", [["fit", "--wrong-flag", "1"], ["paint"], ["render"]])
def test_wrong_usage_is_explained(arguments, capsys):
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2 and "Traceback" not in capsys.readouterr().err


# --- The other commands


def test_eval_writes_the_same_metrics_again(copy):
    before = read_json(copy / "metrics.json")
    (copy / "metrics.json").unlink()
    assert main(["eval", str(copy)]) == 0
    assert_close(read_json(copy / "metrics.json")["psnr"], before["psnr"], 1e-5)


def test_eval_of_another_split_and_folder(copy, data, tmp_path, capsys):
    moved = shutil.copytree(data, tmp_path / "elsewhere")
    assert main(["eval", str(copy), "--split", "val", "--data", str(moved)]) == 0
    assert read_json(copy / "metrics.json")["protocol"]["split"] == "val"
    assert (copy / "pictures" / "val_000.png").exists() and "PSNR" in capsys.readouterr().out


def test_eval_of_a_split_that_is_not_there(copy, capsys):
    refused(["eval", copy, "--split", "holdout"], capsys, "transforms_holdout.json")


@pytest.mark.parametrize("path", ["orbit", "spiral"])
def test_render_films_along_a_path(fitted, tmp_path, path):
    out = tmp_path / "film.gif"
    arguments = ["render", fitted, "--path", path, "--frames", "3", "--out", out]
    assert main([str(argument) for argument in arguments]) == 0
    # A GIF shows frames that are alike once, for longer.
    assert iio.imread(out).shape[1:] == (16, 16, 3) and 1 < len(iio.imread(out)) <= 3


def test_render_of_one_picture(fitted, tmp_path):
    out = tmp_path / "still.png"
    assert main(["render", str(fitted), "--frames", "1", "--out", str(out)]) == 0
    assert read_picture(out).shape == (16, 16, 3)


def test_inspect_prints_the_tree(fitted, capsys):
    assert main(["inspect", str(fitted)]) == 0
    out = capsys.readouterr().out
    assert out.startswith("Scene") and "field" in out and "network weights" in out


@pytest.mark.parametrize("command", ["eval", "render", "inspect", "table"])
def test_folder_that_is_no_run(tmp_path, capsys, command):
    refused([command, tmp_path / "none"], capsys, "none")


@pytest.mark.parametrize("file", ["scene.sg", "config.json", "cameras.sg"])
def test_damaged_run(copy, capsys, file):
    (copy / file).write_bytes((copy / file).read_bytes()[:100])
    refused(["render", copy, "--frames", "1"], capsys, file)


# --- Durations


@pytest.mark.parametrize("text, seconds", [("90s", 90), ("5m", 300), ("2h", 7200), ("1.5", 1.5)])
def test_durations(text, seconds):
    assert seconds_of(text) == seconds


def test_process_is_older_than_this_test():
    first = process_age()
    assert 0 < first <= process_age() < 24 * 3600


# --- Without data


@pytest.mark.slow
def test_fit_without_data_makes_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["fit", "--steps", "100", "--log-every", "50"]) == 0
    run = tmp_path / "runs" / "001"
    counts = {
        split: len(json.loads((run / "data" / f"transforms_{split}.json").read_text())["frames"])
        for split in ("train", "test")
    }
    assert counts == {"train": 100, "test": 20}
    assert read_picture(run / "data" / "train" / "r_0.png").shape == (128, 128, 4)
    assert read_json(run / "metrics.json")["psnr"] > 18
