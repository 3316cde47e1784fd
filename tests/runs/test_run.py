"""Run folders, scores and plots."""

import jax.numpy as jnp
import numpy as np
import pytest

import scenegraph as sg
from scenegraph.images import side_by_side
from scenegraph.io import append_json, FileError, read_picture
from scenegraph.runs import compare, evaluate, open_run, plot_log, read_log
from scenegraph.settings import preset
from support.helpers import assert_close
from support.toy_fits import cloud, cloud_views


@pytest.fixture
def run(tmp_path):
    run = open_run(tmp_path / "run")
    run.save_config(preset("tiny", samples=(3, 4, 5)), data="here", preset="tiny")
    return run


def test_settings_there_and_back(run):
    config, others = run.load_config()
    assert config == preset("tiny", samples=(3, 4, 5)) and others == {
        "data": "here",
        "preset": "tiny",
    }


@pytest.mark.parametrize("content", ["[]", "{}", '{"fit": {"steps": 3}}', '{"fit": {"speed": 1}}'])
def test_settings_of_something_else_are_refused(run, content):
    (run.folder / "config.json").write_text(content)
    with pytest.raises(
        FileError, match="config.json(: its content must be| does not hold the settings)"
    ):
        run.load_config()


def test_folder_without_settings_is_no_run(tmp_path):
    with pytest.raises(FileError, match="not a run folder"):
        open_run(tmp_path).load_config()


def test_resumed_log_loses_the_lines_that_come_again(run):
    for step in (10, 20, 30):
        append_json(run.log, {"step": step, "loss": 1.0 / step})
    run.cut_log(20)
    assert [line["step"] for line in read_log(run.log)] == [10, 20]
    assert not list(run.folder.glob("*.part"))


@pytest.mark.parametrize("line", [b'{"step": 2', b'{"loss": 2}', b"[2]", b"\xff", b"[" * 99_999])
def test_log_with_a_broken_line_is_refused(run, line):
    append_json(run.log, {"step": 1})
    with run.log.open("ab") as file:
        file.write(line + b"\n")
    with pytest.raises(FileError, match="cannot read the log .*metrics.jsonl"):
        read_log(run.log)


def test_half_a_line_at_the_end_of_the_log_is_what_a_killed_process_leaves(run):
    append_json(run.log, {"step": 1})
    with run.log.open("a") as file:
        file.write('{"step": 2')
    assert read_log(run.log) == [{"step": 1}]
    run.cut_log(5)
    append_json(run.log, {"step": 2})
    assert read_log(run.log) == [{"step": 1}, {"step": 2}]


def test_pair_shows_the_picture_left_of_the_truth(run):
    red, blue = jnp.zeros((4, 6, 3)).at[..., 0].set(1), jnp.zeros((4, 6, 3)).at[..., 2].set(1)
    run.save_picture("name", side_by_side([sg.Image(red), sg.Image(blue)]))
    pair = read_picture(run.folder / "pictures" / "name.png")
    assert pair.shape[0] == 4 and pair.shape[1] > 12
    assert np.all(pair[:, :6] == [255, 0, 0]) and np.all(pair[:, -6:] == [0, 0, 255])


def test_plot_is_a_picture(tmp_path):
    log = [{"step": n, "loss": 1.0 / n, "psnr": float(n)} for n in (1, 2, 3)]
    plot_log([*log, {"step": 3, "test_psnr": 2.0}], tmp_path / "plot.png")
    assert read_picture(tmp_path / "plot.png").std() > 10


# --- Scores


def test_perfect_render_scores_perfectly():
    views = cloud_views()
    (scores,) = evaluate(cloud(), views)
    assert scores.name == "image" and scores.psnr > 100 and scores.psnr_8bit == np.inf
    assert np.isnan(scores.ssim)


def test_numbers_of_a_known_error():
    truth = sg.Image(jnp.full((12, 12, 3), 0.5))
    image = sg.Image(jnp.full((12, 12, 3), 0.6))
    scores = compare("name", image, truth)
    assert_close(scores.psnr, 20.0, 1e-4)
    # 0.6 and 0.5 are 153 and 127.5, which rounds to the even 128, of 255.
    assert_close(scores.psnr_8bit, -20 * np.log10(25 / 255), 1e-4)
    assert 0 < scores.ssim < 1


def test_only_the_rounded_scores_clip():
    truth = sg.Image(jnp.ones((12, 12, 3)))
    scores = compare("name", sg.Image(jnp.full((12, 12, 3), 1.1)), truth)
    assert_close(scores.psnr, 20.0, 1e-4)
    assert scores.psnr_8bit == np.inf and scores.ssim_8bit == pytest.approx(1, abs=1e-6)


def test_chosen_frames_and_what_is_seen():
    seen = []
    scores = evaluate(cloud(), cloud_views(), frames=[0, 0], seen=lambda *x: seen.append(x))
    assert len(scores) == len(seen) == 2
    number, image, truth = seen[1]
    assert number == 0 and image.rgb.shape == truth.rgb.shape == (8, 8, 3)
