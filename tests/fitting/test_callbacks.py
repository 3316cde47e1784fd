"""When callbacks are called, what they see, and deadlines."""

import dataclasses
import itertools
import json
import signal
import time

import jax
import jax.numpy as jnp
import optax
import pytest

import scenegraph as sg
from scenegraph.fitting import (
    Console,
    Deadline,
    Every,
    FitState,
    JsonLines,
    Progress,
    progress_line,
    SignsOfLife,
    split_by_purpose,
    StepInfo,
    StopOnSignal,
)
from scenegraph.losses import LossTerms, psnr_to_mse
from scenegraph.runs import Profile
from support.toy_fits import Line, Points, squared_error, StopAt


def run(*callbacks, steps=10, deadline=None, state=None):
    return sg.fit(
        Line.start(),
        Points(),
        optimizer=optax.sgd(0.1),
        loss=squared_error,
        steps=steps,
        key=jax.random.key(0),
        callbacks=callbacks,
        deadline=deadline,
        state=state,
    )


def progress(extra=None) -> Progress:
    zero = jnp.zeros(())
    none = jnp.array(0)
    state = FitState(
        Line.start(), (), extra, split_by_purpose(jax.random.key(0)), jnp.array(30), 120.0, none
    )
    info = StepInfo(jnp.array(0.25), zero, zero, jnp.ones(0, bool), none)
    return Progress(30, state, info, seconds=5.0, rate=10.0)


def test_called_every_so_many_steps_and_after_the_last():
    seen = {3: [], 4: [], 100: []}
    run(*(Every(n, lambda p, n=n: seen[n].append(p.step)) for n in seen))
    assert seen == {3: [3, 6, 9, 10], 4: [4, 8, 10], 100: [10]}


def test_callback_sees_the_state_after_its_step():
    def check(progress):
        assert int(progress.state.step) == int(progress.state.extra) == progress.step
        assert progress.seconds > 0 and progress.psnr() is None

    run(Every(1, check))


def test_callback_may_end_the_fit_and_the_others_are_called_once_more():
    steps = []
    result = run(StopAt(4), Every(3, lambda p: steps.append(p.step)))
    assert int(result.state.step) == 4 and steps[0] == 3


def test_log_is_a_line_of_json_every_so_many_steps(tmp_path):
    run(JsonLines(tmp_path / "log", every=4, rays=8))
    lines = [json.loads(line) for line in (tmp_path / "log").read_text().splitlines()]
    assert [line["step"] for line in lines] == [4, 8, 10]
    assert lines[-1]["loss"] < lines[0]["loss"] and lines[0]["rays_per_second"] > 0
    assert lines[0]["psnr"] is None and lines[0]["gradient_norm"] > 0


def test_profile_records_a_few_steps(tmp_path):
    with Profile(tmp_path, wait=3, steps=2) as profile:
        run(Every(1, lambda p: list(tmp_path.rglob("*.pb")) and p.step < 5 and 1 / 0), profile)
        assert list(tmp_path.rglob("*.xplane.pb"))
    assert len(list(tmp_path.rglob("*.xplane.pb"))) == 1


def test_profile_of_a_fit_that_ends_early_is_written_too(tmp_path):
    with Profile(tmp_path, wait=3, steps=99) as profile:
        run(profile, StopAt(5))
    assert list(tmp_path.rglob("*.xplane.pb"))
    with Profile(tmp_path / "none", wait=99) as profile:
        run(profile)
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize("settings", [{"wait": 0}, {"steps": 0}])
def test_profile_of_nothing(tmp_path, settings):
    with pytest.raises(ValueError, match="at least a step"):
        Profile(tmp_path, **settings)


def test_console_writes_to_the_error_stream(capsys):
    run(Console(every=5))
    out, err = capsys.readouterr()
    assert out == "" and len(err.splitlines()) == 2 and "step       5/10" in err


def test_only_the_first_of_several_processes_writes(tmp_path, capsys):
    other = dataclasses.replace(progress(), first=False)
    assert not JsonLines(tmp_path / "log")(other) and not Console()(other)
    assert not list(tmp_path.iterdir()) and capsys.readouterr().err == ""


def test_progress_line():
    shown = progress(LossTerms(jnp.ones(2), psnr_to_mse(jnp.array([10.0, 21.5]))))
    assert shown.psnr() == pytest.approx(21.5)
    line = progress_line(shown, rays=64)
    parts = ["step      30/120", "loss 0.25000", "psnr 21.50 dB", "640 rays/s", "5 s", "9 s left"]
    assert line == "  ".join(parts)
    assert "10.0 steps/s" in progress_line(progress(), rays=0)
    few = progress(LossTerms(jnp.ones(2), psnr_to_mse(jnp.array([10.0, 21.5])), 3.0))
    assert few.left_out() == 3 and shown.left_out() == progress().left_out() == 0
    assert progress_line(few, rays=64) == "  ".join([*parts[:4], "3 rays left out", *parts[4:]])
    unknown = dataclasses.replace(shown, rate=0.0)
    assert progress_line(unknown, rays=64) == "  ".join([*parts[:3], parts[4]])


@pytest.fixture
def at_noon(monkeypatch):
    """The clock stands at 100 seconds."""
    monkeypatch.setattr(time, "monotonic", lambda: 100.0)


def test_horizon_is_what_fits_into_the_time_that_is_left(at_noon):
    deadline = Deadline(at=130.0)
    assert deadline.horizon(step=50, steps=1000, rate=10.0) == 50 + 30 * 10
    assert deadline.horizon(step=50, steps=200, rate=10.0) == 200
    assert deadline.horizon(step=0, steps=1000, rate=0.0) == 1000


def test_horizon_is_now_when_the_time_is_over(at_noon):
    assert Deadline(at=90.0).horizon(step=50, steps=1000, rate=10.0) == 50
    assert Deadline(at=90.0).horizon(step=0, steps=1000, rate=0.0) == 0


def test_fit_ends_at_its_deadline_and_schedules_know_it(monkeypatch):
    readings = itertools.count()
    monkeypatch.setattr(time, "monotonic", lambda: 0.01 * next(readings))
    horizons = []
    result = run(
        Every(1, lambda p: horizons.append(float(p.state.horizon))),
        steps=10**6,
        deadline=Deadline(at=2.0),
    )
    taken = int(result.state.step)
    # Every step reads the clock a few times, so some dozens fit into two seconds.
    assert 20 < taken < 200 and len(horizons) == taken
    assert horizons[0] == 10**6
    assert all(abs(horizon - taken) < 5 for horizon in horizons[-5:])


def test_schedules_go_on_where_a_fit_by_the_clock_goes_on(monkeypatch):
    """Also before the rate is known: not with the learning rate of the start."""
    readings = itertools.count()
    monkeypatch.setattr(time, "monotonic", lambda: 0.01 * next(readings))
    before = run(steps=10**6, deadline=Deadline(at=2.0)).state
    horizons = []
    go_on = Deadline(at=time.monotonic() + 2.0)
    note = Every(1, lambda p: horizons.append(float(p.state.horizon)))
    after = run(note, steps=10**6, deadline=go_on, state=before).state
    taken = int(after.step) - int(before.step)
    assert 20 < taken < 200 and len(horizons) == taken
    assert horizons[:2] == [int(before.step) + 1, int(before.step) + 2]
    assert max(horizons) < 1000


def test_deadline_that_has_passed_still_takes_one_step():
    assert int(run(deadline=Deadline(time.monotonic() - 1)).state.step) == 1


def test_long_silences_are_broken(monkeypatch, capsys):
    """Lines come after two seconds without one, and seldom in a long fit."""
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    alive = SignsOfLife(Console(every=100), seconds=2.0)

    def lines(steps, seconds, at=0.0):
        for number in steps:
            now[0] += seconds
            alive(dataclasses.replace(progress(), step=number, seconds=at))
        return len(capsys.readouterr().err.splitlines())

    assert lines(range(1, 11), 0.1) == 0
    assert lines(range(11, 20), 1.5) == 5  # Every second step.
    assert lines([100], 1.5) == 0 and lines([101], 1.9) == 0  # The console has said something.
    assert lines(range(102, 112), 2.0, at=1000.0) == 1  # Twenty seconds.


@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT", "SIGHUP"])
def test_signals_end_a_fit_after_the_step_at_hand(name):
    number = signal.Signals[name]
    # A shell may have these ignored in what it runs beside itself.
    outside = signal.signal(number, signal.default_int_handler)
    try:
        before = signal.getsignal(number)
        with StopOnSignal() as stop:
            assert not stop(progress())
            signal.raise_signal(number)
            assert stop.received == number and stop(progress())
            # A second one acts as usual.
            assert signal.getsignal(number) == before
        assert signal.getsignal(number) == before
    finally:
        signal.signal(number, outside)


def test_a_terminal_that_is_closed_under_nohup():
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with StopOnSignal() as stop:
            signal.raise_signal(signal.SIGHUP)
            assert stop.received is None
    finally:
        signal.signal(signal.SIGHUP, before)
