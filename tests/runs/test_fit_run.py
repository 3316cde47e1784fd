"""A whole run from Python: fitted, resumed, scored, filmed, reported."""

import pathlib
import shutil

import equinox as eqx
import imageio.v3 as iio
import numpy as np
import pytest

import scenegraph as sg
from scenegraph.data import load_blender
from scenegraph.io import FileError, read_json, read_picture, write_json, write_picture
from scenegraph.runs import (
    _fit_run,
    _latest_picture,
    cautions,
    evaluate_run,
    film_run,
    FinalReport,
    fit_run,
    FitOptions,
    open_run,
    PathRequest,
    read_log,
    read_result,
    TooFewSteps,
)
from support.blender_folder import write_ball
from support.helpers import assert_close


CONFIG = sg.preset(
    "tiny", steps=2, batch_size=32, width=8, depth=2, view_width=4, samples=(4, 4), log_every=1
)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return write_ball(tmp_path_factory.mktemp("data"), {"train": 4, "val": 1, "test": 2})


@pytest.fixture(scope="module")
def fitted(data, tmp_path_factory):
    """A run, what it said, and its last state. Tests that change it take a copy."""
    run, said = open_run(tmp_path_factory.mktemp("runs") / "run"), []
    state = fit_run(run, CONFIG, data, FitOptions(preset="tiny", say=said.append))
    return run, said, state


def steps_of(run) -> list[int]:
    return [line["step"] for line in read_log(run.log) if "loss" in line]


@pytest.fixture
def run(fitted, tmp_path):
    return open_run(shutil.copytree(fitted[0].folder, tmp_path / "run"))


def test_fit_leaves_a_whole_run_and_says_how_it_went(fitted, data):
    run, said, state = fitted
    config, others = run.load_config()
    assert set(others.pop("fingerprint")) == {"train", "test"}
    assert config == CONFIG.replace(bounds="found") and others == {
        "data": str(data),
        "preset": "tiny",
    }
    assert eqx.tree_equal(sg.load(run.folder), state.model) and int(state.step) == 2
    assert steps_of(run) == [1, 2]
    assert (run.folder / "curve.png").exists() and (run.folder / "turntable.gif").exists()
    assert said[0] == f"data {data}, run {run.folder}"
    assert said[-1].startswith("test psnr ") and "on 2 pictures" in said[-1]


def test_pictures_of_the_training_are_called_that_and_end_no_fit(tmp_path):
    data, said = write_ball(tmp_path / "data", {"train": 3}), []
    run, config = open_run(tmp_path / "run"), CONFIG.replace(eval_every=1)
    with pytest.raises(ValueError, match="no held-out pictures .*--target-psnr"):
        fit_run(run, config, data, FitOptions(target_psnr=1.0))
    assert not run.folder.exists()
    fit_run(run, config, data, FitOptions(say=said.append))
    assert not [line for line in said if "held-out psnr" in line or "test psnr" in line]
    assert [line for line in said if line.startswith("training psnr ")][-1] == said[-1]
    assert not any("test_psnr" in line for line in read_log(run.log))
    # Nor is any checkpoint the best by them.
    assert run.checkpoints().best() is None and steps_of(run) == [1, 2]
    (caution,) = [x for x in cautions([read_result(run)]) if "training" in x]
    assert caution.startswith("run: ")


def test_a_target_that_nobody_looks_at(data, tmp_path):
    with pytest.raises(ValueError, match="--target-psnr needs .*--eval-every above 0"):
        options = FitOptions(target_psnr=1.0)
        fit_run(open_run(tmp_path / "run"), CONFIG.replace(eval_every=0), data, options)


def test_resumed_fit_goes_on(run, data):
    state = fit_run(run, CONFIG.replace(steps=3), data, FitOptions(resume=True))
    assert int(state.step) == 3 and steps_of(run) == [1, 2, 3]


def test_run_is_scored_like_its_scene(run, data):
    metrics = evaluate_run(run, "val")
    views = sg.load_blender(data, "val")
    (scores,) = sg.runs.evaluate(sg.load(run.folder), views)
    assert metrics["psnr"] == pytest.approx(scores.psnr, 1e-5)
    assert read_json(run.metrics) == read_json(run.metrics_of("val")) == metrics
    assert (run.pictures / "val_000.png").exists()


@pytest.fixture(scope="module")
def elsewhere(tmp_path_factory):
    """As the data, with another ball: the same names, sizes and cameras, and other colours."""
    splits = {"train": 4, "val": 1, "test": 2}
    folder = write_ball(tmp_path_factory.mktemp("other"), splits)
    for path in folder.rglob("*.png"):
        write_picture(path, read_picture(path)[..., [2, 1, 0, 3]])
    return folder


@pytest.mark.parametrize("split", ["test", "val"])
def test_other_data_are_refused_or_scored_apart(run, elsewhere, split):
    before = {path: path.read_bytes() for path in run.folder.rglob("*.*") if path.is_file()}
    with pytest.raises(FileError, match="other colours.*Pass --other-data"):
        evaluate_run(run, split, data=elsewhere)
    said = []
    metrics = evaluate_run(run, split, data=elsewhere, other_data=True, say=said.append)
    assert {path: path.read_bytes() for path in before} == before
    out = open_run(run.folder / "other-data" / elsewhere.name)
    assert read_json(out.metrics) == metrics and (out.pictures / f"{split}_000.png").exists()
    assert str(out.folder) in said[-2] and str(out.metrics) in said[-1]
    # As a run of an earlier version, which has no fingerprint.
    settings = read_json(run.folder / "config.json")
    del settings["fingerprint"]
    write_json(run.folder / "config.json", settings)
    assert evaluate_run(run, split, data=elsewhere)["psnr"] == metrics["psnr"]


def test_data_that_moved_are_the_same_data(run, data, tmp_path):
    moved = pathlib.Path(shutil.copytree(data, tmp_path / "moved"))
    metrics = evaluate_run(run, data=moved, other_data=True)
    assert read_json(run.metrics) == metrics and not (run.folder / "other-data").exists()
    (moved / "test" / "r_0.png").rename(moved / "test" / "other.png")
    listing = (moved / "transforms_test.json").read_text()
    (moved / "transforms_test.json").write_text(listing.replace("r_0", "other"))
    with pytest.raises(FileError, match="test split has pictures of other names"):
        evaluate_run(run, data=moved)
    (moved / "transforms_train.json").write_text(listing.replace("r_0", "other"))
    with pytest.raises(FileError, match="train split has 2 pictures instead of 4"):
        evaluate_run(run, "val", data=moved)


def test_cameras_are_part_of_the_data(run, data, tmp_path):
    moved = pathlib.Path(shutil.copytree(data, tmp_path / "moved"))
    listing = read_json(moved / "transforms_test.json")
    write_json(moved / "transforms_test.json", listing | {"camera_angle_x": 0.9})
    with pytest.raises(FileError, match="pictures with other cameras"):
        evaluate_run(run, data=moved)


def test_resuming_with_other_data_is_refused(run, elsewhere):
    with pytest.raises(FileError, match="other colours.*another --out"):
        fit_run(run, CONFIG.replace(steps=3), elsewhere, FitOptions(resume=True))
    assert steps_of(run) == [1, 2]


def test_pictures_of_an_earlier_evaluation_do_not_linger(run):
    evaluate_run(run, measures=sg.runs.Measures())
    stale = {"test_001_error.png", "test_007.png"}
    kept = {"val_003.png", "test_mine.png", "tests_000.png", "latest.png"}
    for name in stale | kept:
        (run.pictures / name).touch()
    evaluate_run(run, frames=[0])
    assert {path.name for path in run.pictures.iterdir()} == {"test_000.png"} | kept


def test_data_that_are_gone(run):
    write_json(run.folder / "config.json", read_json(run.folder / "config.json") | {"data": "/no"})
    with pytest.raises(FileError, match="are no longer in /no; pass --data"):
        evaluate_run(run)


def test_run_is_filmed(run, tmp_path):
    frames = []

    def track(numbers):
        frames.extend(numbers)
        return iter(numbers)

    out = tmp_path / "film.gif"
    request = PathRequest("views", split="train", frames=2)
    assert film_run(run, out, request, max_width=8, track=track) == [out]
    assert iio.imread(out).shape == (2, 8, 8, 3) and frames == [0, 1]


def test_final_report_of_some_pictures(run):
    said = []
    FinalReport([1]).write(run, say=said.append)
    (score,) = read_json(run.metrics)["per_image"]
    assert score["name"] == "./test/r_1" and f"psnr {score['psnr']:.2f}" in said[-1]
    assert np.isfinite(score["psnr"])


def test_what_the_box_leaves_out_is_said_before_the_fit(fitted, data, tmp_path):
    said, config = [], CONFIG.replace(box_scale=0.3, steps=1)
    fit_run(open_run(tmp_path / "run"), config, data, FitOptions(say=said.append))
    assert [index for index, line in enumerate(said) if "look past that box" in line] == [2]
    assert said[1].startswith("the scene lies between")
    assert not any("look past" in line for line in fitted[1])


def test_nothing_is_written_for_a_bad_folder(tmp_path):
    with pytest.raises(FileError, match="none"):
        fit_run(open_run(tmp_path / "run"), CONFIG, tmp_path / "none")
    assert not (tmp_path / "run").exists()


def test_run_folder_in_use_is_refused(run, data):
    with pytest.raises(FileError, match="is not empty"):
        fit_run(run, CONFIG, data)


def test_a_fit_of_too_few_steps_says_so(data, tmp_path):
    """After its report: there are pictures, a score and a state to go on from."""
    run, said = open_run(tmp_path / "run"), []
    options = FitOptions(limit=0.5, say=said.append)
    with pytest.raises(TooFewSteps, match=r"too few .* limit of 0.5 s .* --max-time"):
        fit_run(run, CONFIG.replace(steps=10_000), data, options)
    assert len(read_json(run.metrics)["per_image"]) == 1
    assert any("no time for a film" in line for line in said)
    assert run.checkpoints().paths() and not (run.folder / "turntable.gif").exists()


def test_a_film_can_be_left_out(data, tmp_path):
    run = open_run(tmp_path / "run")
    fit_run(run, CONFIG.replace(film="none"), data)
    assert run.metrics.exists() and not (run.folder / "turntable.gif").exists()


def test_latest_picture_is_beside_the_truth(data, tmp_path, monkeypatch):
    """Also where it is smaller than the truth by a whole factor."""
    monkeypatch.setattr(_latest_picture, "_FIRST", 0.0)
    monkeypatch.setattr(_latest_picture, "_WIDTH", 8)
    run, said = open_run(tmp_path / "run"), []
    fit_run(run, CONFIG, data, FitOptions(say=said.append))
    shown = iio.imread(run.pictures / "latest.png")
    held_out = load_blender(data, "test")
    truth = np.asarray(held_out.image(held_out.frames // 2).rgb)
    assert shown.shape == (8, 18, 3) and truth.shape == (16, 16, 3)
    small = truth.reshape(8, 2, 8, 2, 3).mean(axis=(1, 3))
    assert_close(shown[:, 10:] / 255, small, 0, 0.51 / 255)
    assert sum("latest.png shows" in line for line in said) == 1


def test_a_held_out_picture_that_is_damaged_ends_the_fit(data, tmp_path):
    folder = shutil.copytree(data, tmp_path / "data")
    picture = folder / "test" / "r_1.png"
    picture.write_bytes(picture.read_bytes()[:60])
    with pytest.raises(FileError, match=picture.name):
        fit_run(open_run(tmp_path / "run"), CONFIG, folder)


def test_held_out_pictures_are_read_once_a_step_is_taken(data, tmp_path, monkeypatch):
    options, stepped, read = FitOptions(), [], _fit_run.read_held_out

    def read_and_note(*arguments):
        stepped.append(options.milestones.stepped.is_set())
        return read(*arguments)

    monkeypatch.setattr(_fit_run, "read_held_out", read_and_note)
    fit_run(open_run(tmp_path / "run"), CONFIG, data, options)
    assert stepped == [True]
