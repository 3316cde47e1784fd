"""Corrections of cameras and colours in whole runs."""

import dataclasses

import equinox as eqx
import numpy as np
import pytest

import scenegraph as sg
from scenegraph.fitting import poses_of, split_by_purpose
from scenegraph.io import read_json
from scenegraph.runs import (
    evaluate_run,
    fit_run,
    FitOptions,
    load_state,
    open_run,
    save_state,
)
from scenegraph.scene import named_leaves
from scenegraph.settings import _corrections, CorrectionSettings, make_scene, prepare
from support.blender_folder import write_ball
from support.helpers import assert_close
from support.toy_fits import StopAt


CONFIG = sg.preset(
    "tiny", steps=4, batch_size=32, width=8, depth=2, view_width=4, samples=(4, 4), log_every=1
)
REFINED = CONFIG.replace(refine_cameras="all", exposure="on", film="none", save_every=2)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return write_ball(tmp_path_factory.mktemp("data"), {"train": 4, "test": 2})


def test_without_corrections_the_parts_of_a_fit_are_what_they_were(data):
    """Those that the settings of method and training make alone, to the last bit."""
    config = CONFIG.replace(bounds="found")
    views = config.data.load(data)
    parts = prepare(config, views)
    box = config.data.find_box(views)
    scene = make_scene(config, box, key=split_by_purpose(parts.key).weights)
    assert eqx.tree_equal(parts.scene, scene)
    assert eqx.tree_equal(parts.batches, config.training.make_batches(views, box))
    free = eqx.filter(scene, eqx.is_inexact_array)
    usual = config.training.make_optimizer().init(free)
    assert eqx.tree_equal(parts.optimizer.init(free), usual)
    assert config.corrections.are_none and config.corrections.describe() is None


def test_exposure_is_chosen_by_opacity(data):
    rendered = CONFIG.data.load(data)
    photographs = dataclasses.replace(rendered, pixels=rendered.pixels[:, :3])
    auto = CorrectionSettings(exposure="auto")
    assert auto.choose(rendered).exposure == "off" and auto.choose(photographs).exposure == "on"
    poses = CorrectionSettings(refine_cameras="poses")
    assert poses.choose(rendered).polishes and not poses.choose(photographs).polishes
    assert dataclasses.replace(poses, polish_cameras="on").choose(photographs).polishes
    assert CorrectionSettings(exposure="on").choose(rendered).exposure == "on"
    assert auto.choose(photographs).describe() == (
        "fitted with the scene: exposure and white balance of every picture"
    )
    assert all(sg.preset(name).corrections.are_none for name in ("fast", "mipnerf-llff"))


def test_corrections_are_leaves_of_the_scene(data):
    parts = prepare(REFINED.replace(bounds="found"), REFINED.data.load(data))
    free = {path for path, _, frozen in named_leaves(parts.scene) if not frozen}
    own = {path for path in free if path.startswith("capture.")}
    assert own == {"capture.poses", "capture.lens", "capture.colors"}
    assert parts.batches.annealing is not None and parts.batches.annealing.steps == 2
    exact = prepare(CONFIG.replace(bounds="found"), CONFIG.data.load(data))
    # Silhouettes may be off, so that the box is larger.
    assert np.all(parts.box[0] <= exact.box[0]) and np.all(parts.box[1] >= exact.box[1])
    assert np.prod(np.subtract(*parts.box)) < np.prod(np.subtract(*exact.box))


def test_refined_fits_soon_forget_what_was_seen_of_a_cell(data):
    """While cameras are wrong, fog is seen about everything: it must not be sampled to the end."""
    config = sg.preset("fast", resolutions=(8, 16), capacity=2**10, occupancy=8)

    def decay(config) -> float:
        return (
            prepare(config, config.data.load(data))
            .scene.root.children["field"]
            .child.occupancy.value.decay
        )

    assert decay(config) == decay(config.replace(exposure="on")) == 0.9
    assert decay(config.replace(refine_cameras="poses")) == 0.6


@pytest.mark.slow
def test_run_that_refines_cameras(data, tmp_path, monkeypatch):
    monkeypatch.setattr(_corrections, "_STEPS", 2)
    monkeypatch.setattr(_corrections, "_FEWEST", 1)
    run, said = open_run(tmp_path / "run"), []
    state = fit_run(run, REFINED, data, FitOptions(say=said.append))
    capture = state.model["capture"]
    assert np.any(np.asarray(capture.poses) != 0) and np.any(np.asarray(capture.lens) != 0)
    assert eqx.tree_equal(sg.load(run.folder), state.model)
    # What was found is written, and read again.
    (line,) = [x for x in said if x.startswith("cameras of the test pictures")]
    assert "then the pose of each picture, and nothing else, was fitted to it (2 steps" in line
    assert "similarity" in read_json(run.metrics)["protocol"]["cameras"]
    assert "similarity" in run.report.read_text()
    written = sg.load_data(run.folder)
    assert_close(poses_of(written.cameras), poses_of(capture.corrected()), 0, 1e-6)
    assert_close(written.cameras.focal, capture.corrected().focal, 1e-6)
    assert sg.load_data(run.folder, "test").frames == 2
    # Scored again, with cameras that are found again.
    before = read_json(run.metrics)["psnr"]
    assert evaluate_run(run)["psnr"] == pytest.approx(before, abs=1e-4)
    assert evaluate_run(run, "train")["protocol"]["cameras"] == "corrected by the fit"


@pytest.mark.slow
def test_resumed_fit_with_corrections_is_the_same_to_the_last_bit(data, tmp_path):
    parts = prepare(REFINED.replace(bounds="found"), REFINED.data.load(data))

    def fit(state=None, callbacks=()):
        return sg.fit(
            parts.scene,
            parts.batches,
            optimizer=parts.optimizer,
            loss=parts.loss,
            steps=4,
            key=parts.key,
            callbacks=callbacks,
            state=state,
        ).state

    half = fit(callbacks=[StopAt(2)])
    save_state(tmp_path / "half", half)
    again, whole = fit(load_state(tmp_path / "half", half)), fit()
    assert int(half.step) == 2 and int(again.step) == 4
    assert eqx.tree_equal(again.model, whole.model)
    assert eqx.tree_equal(again.moments, whole.moments)
