"""`scenegraph eval` and `scenegraph table`, on a scene that nobody has fitted."""

import json
import pathlib
import sys
import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import scenegraph as sg
from scenegraph.cli import main
from scenegraph.io import read_picture
from scenegraph.runs import open_run, Pace
from scenegraph.settings import make_scene
from support.blender_folder import write_ball
from support.command_line import refused
from support.helpers import assert_close


SMALL = {"width": 8, "depth": 2, "view_width": 4, "samples": (4, 4)}
CONFIG = sg.preset("tiny", bounds="none", near=2.0, far=6.0, **SMALL)


@pytest.fixture(scope="module")
def data(tmp_path_factory) -> pathlib.Path:
    folder = tmp_path_factory.mktemp("data") / "ball"
    folder.mkdir()
    return write_ball(folder, {"train": 1, "val": 1, "test": 2})


@pytest.fixture
def run(data, tmp_path) -> pathlib.Path:
    run = open_run(tmp_path / "run")
    run.save_config(CONFIG, data=str(data), preset="tiny")
    sg.save(make_scene(CONFIG, None, key=jax.random.key(0)), run.folder / "scene.sg")
    return run.folder


def without(monkeypatch, *packages: str) -> None:
    for package in packages:
        monkeypatch.setitem(sys.modules, package, None)


# --- eval


def test_eval_is_the_same_every_time(run, capsys):
    assert main(["eval", str(run)]) == 0
    first = (run / "metrics.json").read_bytes(), (run / "metrics.md").read_bytes()
    assert main(["eval", str(run)]) == 0
    assert ((run / "metrics.json").read_bytes(), (run / "metrics.md").read_bytes()) == first
    assert (run / "metrics_test.json").read_bytes() == first[0]


def test_eval_says_how_it_measured(run, data, capsys):
    assert main(["eval", str(run)]) == 0
    out, err = capsys.readouterr()
    metrics = json.loads((run / "metrics.json").read_text())
    protocol = metrics["protocol"]
    assert protocol["data"] == str(data) and protocol["split"] == "test"
    assert protocol["pictures"] == protocol["of"] == 2 and protocol["size"] == [16, 16]
    (scale,) = metrics["scales"]
    assert scale["size"] == [16, 16] and scale["pictures"] == 2
    assert scale["mean"]["psnr"] == metrics["psnr"] and scale["std"] == metrics["std"]
    assert f"{metrics['psnr']:.2f} ± {metrics['std']['psnr']:.2f}" in out
    assert "metrics.md" in err


def test_eval_without_the_extras(run, monkeypatch, capsys):
    without(monkeypatch, "flip_evaluator", "lpips")
    assert main(["eval", str(run)]) == 0
    err = capsys.readouterr().err
    for extra in ("metrics", "lpips"):
        assert err.count(f"pip install scenegraph[{extra}]") == 1
    metrics = json.loads((run / "metrics.json").read_text())
    assert metrics["flip"] is metrics["lpips"] is metrics["average"] is None
    assert set(metrics["missing"]) == {"flip", "lpips", "average"} and metrics["psnr"] > 0
    assert "scenegraph[metrics]" in (run / "metrics.md").read_text()


def test_flip_of_eval_is_that_of_the_rendered_pictures(run, data, capsys):
    pytest.importorskip("flip_evaluator", reason="needs flip-evaluator: scenegraph[metrics]")
    assert main(["eval", str(run), "--no-lpips"]) == 0
    metrics = json.loads((run / "metrics.json").read_text())
    views = sg.load_blender(data, "test", near=2.0, far=6.0)
    pairs = [(sg.render(sg.load(run), views.camera(i)), views.image(i)) for i in (0, 1)]
    expected = [sg.losses.flip(image.rgb, truth.rgb) for image, truth in pairs]
    assert [x["flip"] for x in metrics["per_image"]] == pytest.approx(expected, rel=1e-4)
    assert metrics["flip"] == pytest.approx(np.mean(expected), rel=1e-4)
    assert "pixels per degree" in metrics["protocol"]["flip"]
    assert metrics["missing"]["lpips"] == "LPIPS was not requested"


def test_eval_with_lpips(run, monkeypatch, capsys):
    """With a network that is not there, in place of one that may not be there."""
    monkeypatch.setattr(
        sys.modules["scenegraph.runs._evaluate"],
        "load_lpips",
        lambda weights: lambda image, truth: float(jnp.mean(jnp.abs(image - truth))),
    )
    assert main(["eval", str(run)]) == 0
    metrics = json.loads((run / "metrics.json").read_text())
    psnr, ssim, lpips = (metrics[name] for name in ("psnr", "ssim", "lpips"))
    expected = (10 ** (-psnr / 10) * (1 - ssim) ** 0.5 * lpips) ** (1 / 3)
    assert metrics["average"] == pytest.approx(expected, rel=1e-4)
    assert "lpips" not in metrics["missing"] and "VGG16" in metrics["protocol"]["lpips"]


def test_weights_that_are_not_there(run, tmp_path, capsys):
    """Or, before that, a package that is not there."""
    refused(["eval", run, "--lpips-weights", tmp_path / "none.pth"], capsys, "LPIPS needs")
    assert not (run / "metrics.json").exists()


def test_eval_shows_the_error(run, capsys):
    assert main(["eval", str(run)]) == 0
    shown = read_picture(run / "pictures" / "test_001_error.png")
    pair = read_picture(run / "pictures" / "test_001.png")
    # Enlarged by 13, in the same order.
    assert_close(shown[6:208:13, 6:208:13], pair[:, :16], 0, 1)
    assert_close(shown[6:208:13, 212 + 6 : 212 + 208 : 13], pair[:, -16:], 0, 1)


def test_long_tasks_tell_how_long(monkeypatch):
    clock = iter([0.0, 30.0, 35.0, 41.0, 52.0, 53.0])
    monkeypatch.setattr(time, "monotonic", lambda: next(clock))
    lines: list[str] = []
    pace = Pace(10, lines.append)
    for _ in range(5):
        pace.tick()
    # Thirty seconds of the first were compilation.
    assert lines == [
        "picture 2/10, 5.0 s each, 40 s left",
        "picture 4/10, 7.3 s each, 44 s left",
    ]


# --- table


def test_table_of_a_run(run, capsys):
    assert main(["eval", str(run), "--no-lpips"]) == 0
    psnr = json.loads((run / "metrics.json").read_text())["psnr"]
    capsys.readouterr()
    assert main(["table", str(run)]) == 0
    out, err = capsys.readouterr()
    assert out.startswith("| scene | PSNR ↑ | ") and f"| ball  |  {psnr:.2f} |" in out
    assert "run: no LPIPS (LPIPS was not requested)" in err


def test_table_into_a_file(run, tmp_path, capsys):
    assert main(["eval", str(run)]) == 0
    capsys.readouterr()
    out = tmp_path / "table.tex"
    assert main(["table", str(run), "--format", "latex", "--out", str(out), "--split", "test"]) == 0
    assert capsys.readouterr().out == ""
    assert "\\begin{tabular}" in out.read_text() and "ball & " in out.read_text()


def test_run_that_was_never_evaluated(run, capsys):
    refused(["table", run], capsys, "was not evaluated", f"`scenegraph eval {run}`")


def test_split_that_was_not_evaluated(run, capsys):
    assert main(["eval", str(run)]) == 0
    refused(["table", run, "--split", "val"], capsys, f"`scenegraph eval {run} --split val`")


def test_no_runs_at_all(capsys):
    refused(["table"], capsys, "name at least one run folder")
