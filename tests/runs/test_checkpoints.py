"""Checkpoints beside a fit: which stay, what happens when one cannot be written, and going on."""

import contextlib
import errno
import pathlib
import resource
import subprocess
import threading

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import scenegraph as sg
from scenegraph.fitting import start_state
from scenegraph.io import FileError
from scenegraph.runs import Checkpoints, load_state, Snapshot
from support.toy_fits import Line, Points, squared_error


KEY = jax.random.key(3)
RULE = optax.adam(0.1)


def state_of(step: int, slope: float = 0.0):
    state = start_state(Line.start(), RULE, extra=jnp.array(0), key=KEY)
    return eqx.tree_at(
        lambda s: (s.step, s.model.slope), state, (jnp.array(step), jnp.float32(slope))
    )


def fit_line(steps, *callbacks, state=None):
    return sg.fit(
        Line.start(),
        Points(0.1),
        optimizer=RULE,
        loss=squared_error,
        steps=steps,
        key=KEY,
        callbacks=callbacks,
        state=state,
    )


def names(folder: pathlib.Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


# --- Which stay


def test_every_so_many_steps_and_the_newest_stay(tmp_path):
    with Checkpoints(tmp_path, 3, keep=2) as checkpoints:
        fit_line(14, checkpoints)
    assert names(tmp_path) == ["00000009.sg", "00000012.sg"]
    states = [load_state(path, state_of(0)) for path in checkpoints.paths()]
    assert [int(state.step) for state in states] == [9, 12]


def test_the_first_step_of_a_fit_is_saved_at_once(tmp_path):
    with Checkpoints(tmp_path / "a", 3, first=True) as checkpoints:
        fit_line(4, checkpoints)
    assert names(tmp_path / "a") == ["00000001.sg", "00000003.sg"]
    with Checkpoints(tmp_path / "a", 4, first=True) as later:
        fit_line(6, later, state=later.restore(state_of(0)))
    assert names(tmp_path / "a") == ["00000001.sg", "00000003.sg", "00000004.sg"]
    with Checkpoints(tmp_path / "b", 0, first=True) as never:
        fit_line(4, never)
    assert not (tmp_path / "b").exists()


def test_the_best_stays_however_old(tmp_path):
    with Checkpoints(tmp_path, keep=2) as checkpoints:
        for step, psnr in enumerate([20.0, 31.25, 22.0, 31.0, float("nan"), 9.0], 1):
            checkpoints.save_if_best(state_of(step), psnr)
            checkpoints.save(state_of(step))
    assert names(tmp_path) == ["00000002_psnr_31.2500.sg", "00000005.sg", "00000006.sg"]
    assert checkpoints.best() == tmp_path / "00000002_psnr_31.2500.sg"


def test_scores_may_be_negative_or_infinite(tmp_path):
    with Checkpoints(tmp_path, keep=1) as checkpoints:
        for step, psnr in enumerate([-np.inf, -3.0, np.inf], 1):
            checkpoints.save_if_best(state_of(step), psnr)
            checkpoints.wait()
            best = checkpoints.best()
            assert best is not None and best.name == f"{step:08d}_psnr_{psnr:.4f}.sg"


def test_a_later_process_knows_the_best_of_an_earlier(tmp_path):
    for step, psnr in [(1, 25.0), (2, 24.0), (3, 26.0)]:
        with Checkpoints(tmp_path, keep=1) as checkpoints:
            checkpoints.save_if_best(state_of(step), psnr)
            checkpoints.save(state_of(step))
            checkpoints.wait()
        assert (checkpoints.best() or tmp_path).name.endswith("psnr_26.0000.sg") == (step == 3)


def test_what_came_after_a_restored_step_is_forgotten(tmp_path):
    with Checkpoints(tmp_path, keep=9) as checkpoints:
        for step in (10, 20, 30):
            checkpoints.save(state_of(step))
        checkpoints.save(state_of(15))
    assert names(tmp_path) == ["00000010.sg", "00000015.sg"]


def test_half_written_files_are_removed_and_strange_ones_left_alone(tmp_path):
    (tmp_path / "00000007.part.sg").write_bytes(b"half")
    (tmp_path / "notes.sg").write_bytes(b"mine")
    with Checkpoints(tmp_path) as checkpoints:
        checkpoints.save(state_of(8))
    assert names(tmp_path) == ["00000008.sg", "notes.sg"]


@pytest.mark.parametrize("settings", [{"keep": 0}, {"period": -1}])
def test_settings_that_make_no_sense(tmp_path, settings):
    with pytest.raises(ValueError, match="at least one checkpoint has to stay"):
        Checkpoints(tmp_path, **settings)


# --- Written without stopping the fit


def test_the_fit_goes_on_while_a_checkpoint_is_written(tmp_path, monkeypatch):
    """Were it to wait, it would never end: the thread waits for the fit."""
    last, write = threading.Event(), Snapshot.write

    def wait_for_the_end(snapshot, path, **about):
        assert last.wait(60)
        write(snapshot, path, **about)

    monkeypatch.setattr(Snapshot, "write", wait_for_the_end)
    with Checkpoints(tmp_path, 2) as checkpoints:
        result = fit_line(3, checkpoints)
        assert not list(tmp_path.iterdir())
        last.set()
    saved = load_state(tmp_path / "00000002.sg", result.state)
    assert int(saved.step) == int(saved.extra) == 2 and saved.model.slope != result.scene.slope


def test_errors_of_the_thread_end_the_fit_at_once(tmp_path, monkeypatch):
    failed = threading.Event()

    def no_room(snapshot, path, **about):
        failed.set()
        raise OSError(errno.ENOSPC, "No space left on device")

    def wait(progress):
        return failed.wait(60) and False

    monkeypatch.setattr(Snapshot, "write", no_room)
    steps = []
    with pytest.raises(FileError, match="checkpoint of step 2 could not be written.*No space left"):
        with Checkpoints(tmp_path, 2) as checkpoints:
            waits = sg.fitting.Every(1, lambda p: p.step == 3 and wait(p))
            fit_line(50, waits, sg.fitting.Every(1, lambda p: steps.append(p.step)), checkpoints)
    assert len(steps) < 10


def test_an_error_of_the_fit_is_not_hidden_by_one_of_the_thread(tmp_path, monkeypatch):
    def broken(snapshot, path, **about):
        raise OSError(errno.EIO, "bad disk")

    monkeypatch.setattr(Snapshot, "write", broken)
    with pytest.raises(ZeroDivisionError):
        with Checkpoints(tmp_path) as checkpoints:
            checkpoints.save(state_of(1))
            raise ZeroDivisionError


# --- A full disk


@contextlib.contextmanager
def largest_file(size: int):
    """What the system refuses to write beyond, like a disk that is full."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_write_that_fails_half_way_leaves_the_one_before(tmp_path):
    """By RLIMIT_FSIZE: the system itself refuses to write on."""
    with Checkpoints(tmp_path, keep=1) as checkpoints:
        checkpoints.save(state_of(4, slope=4.0))
        checkpoints.wait()
        before = (tmp_path / "00000004.sg").read_bytes()
        with largest_file(len(before) // 2):
            checkpoints.save(state_of(5))
            told = "step 5 could not be written.*; the one of step 4 is whole"
            with pytest.raises(FileError, match=told):
                checkpoints.wait()
        assert names(tmp_path) == ["00000004.sg"]
        assert (tmp_path / "00000004.sg").read_bytes() == before
        assert checkpoints.restore(state_of(0)).model.slope == 4.0


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 64 KiB."""
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(tmp_path)]
    try:
        done = subprocess.run(mount, capture_output=True, check=False)
    except FileNotFoundError:
        pytest.skip("there is no `mount` here")
    if done.returncode:
        pytest.skip(f"mounting is not allowed here: {done.stderr.decode().strip()}")
    yield tmp_path
    subprocess.run(["umount", "-l", str(tmp_path)], check=True)


def test_a_disk_that_is_full(small_disk):
    with pytest.raises(FileError, match=r"No space left on device\); the one of step \d+ is whole"):
        with Checkpoints(small_disk, 1, keep=99) as checkpoints:
            fit_line(100, checkpoints)
    kept = checkpoints.paths()
    assert len(kept) > 2 and not list(small_disk.glob("*.part*"))
    for step, path in enumerate(kept, 1):
        assert int(load_state(path, state_of(0)).step) == step


# --- Going on


def test_the_newest_that_is_whole_is_restored(tmp_path):
    with Checkpoints(tmp_path, keep=3) as checkpoints:
        for step in (1, 2, 3):
            checkpoints.save(state_of(step, slope=step / 2))
    cut = tmp_path / "00000003.sg"
    cut.write_bytes(cut.read_bytes()[:-20])
    skipped = []
    assert checkpoints.restore(state_of(0), skipped=skipped.append).model.slope == 1.0
    assert [str(cut) in str(error) for error in skipped] == [True]
    with pytest.warns(UserWarning, match="00000003.sg is damaged.*An older checkpoint is taken"):
        checkpoints.restore(state_of(0))


def test_what_was_restored_is_not_saved_again(tmp_path):
    with Checkpoints(tmp_path) as checkpoints:
        checkpoints.save(state_of(4), psnr=20.0)
    with Checkpoints(tmp_path) as later:
        later.save(later.restore(state_of(0)))
    assert names(tmp_path) == ["00000004_psnr_20.0000.sg"]


def test_one_of_another_scene_is_not_passed_over(tmp_path):
    with Checkpoints(tmp_path) as checkpoints:
        checkpoints.save(state_of(1))
        other = eqx.tree_at(lambda s: s.model.slope, state_of(2), jnp.zeros(3))
        checkpoints.save(other)
    with pytest.raises(
        FileError, match=r"00000002.sg belongs to another scene: slope is float32\[3"
    ):
        checkpoints.restore(state_of(0))


@pytest.mark.parametrize("damage", [True, False])
def test_nothing_to_restore(tmp_path, damage):
    checkpoints = Checkpoints(tmp_path / "none")
    if damage:
        checkpoints.folder.mkdir()
        (checkpoints.folder / "00000001.sg").write_bytes(b"rubbish")
    with pytest.raises(FileError, match="no whole checkpoint in .*none"):
        checkpoints.restore(state_of(0), skipped=lambda error: None)


def test_resumed_from_any_checkpoint_is_the_same_as_never_stopped(tmp_path):
    with Checkpoints(tmp_path, 1, keep=99) as checkpoints:
        whole = fit_line(6, checkpoints)
    assert len(checkpoints.paths()) == 6
    for path in checkpoints.paths():
        resumed = fit_line(6, state=load_state(path, state_of(0)))
        assert eqx.tree_equal(resumed.state, whole.state)


def test_what_else_is_remembered(tmp_path):
    with Checkpoints(tmp_path, about={"preset": "tiny"}) as checkpoints:
        checkpoints.save(state_of(1), psnr=30.5)
    header = sg.io.read_header(checkpoints.paths()[0])
    assert header["about"] == {"preset": "tiny", "psnr": 30.5}
