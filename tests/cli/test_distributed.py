"""`fit --distributed`: two processes of the command line on one host."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import time

import equinox as eqx
import pytest

import scenegraph as sg
from support.blender_folder import write_ball
from support.command_line import refused
from support.device_fits import free_port


STEPS, SECONDS = 200, 400
SETTINGS = (
    f"--steps {STEPS} --preset tiny --batch-size 64 --width 8 --depth 2 --view-width 4 "
    "--samples 4 4 --log-every 1 --save-every 10 --eval-every 0 --memory-map always"
).split()


@pytest.fixture(scope="module")
def data(tmp_path_factory) -> pathlib.Path:
    return write_ball(tmp_path_factory.mktemp("data"), {"train": 3, "test": 1}, size=8)


def start(data, run, *more: str) -> list[subprocess.Popen]:
    """Two processes of one fit."""
    ours = ["--out", str(run), *more, *SETTINGS]
    together = [
        "--distributed",
        "--coordinator",
        f"localhost:{free_port()}",
        "--num-processes",
        "2",
    ]
    command = [sys.executable, "-m", "scenegraph", "fit", str(data), *ours, *together]
    environment = {**os.environ, "SCENEGRAPH_CACHE": str(data / "cache"), "JAX_PLATFORMS": "cpu"}
    pipes = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, "text": True}
    return [
        subprocess.Popen([*command, "--process-id", str(number)], env=environment, **pipes)
        for number in (0, 1)
    ]


def ended(processes, seconds: float = SECONDS) -> list[tuple[int, str]]:
    """Exit codes and what was said; none of them outlives this."""
    try:
        said = [process.communicate(timeout=seconds)[1] for process in processes]
    finally:
        for process in processes:
            process.kill()
    return [(process.returncode, text) for process, text in zip(processes, said, strict=True)]


def log_of(run: pathlib.Path) -> dict[int, float]:
    log = run / "metrics.jsonl"
    written = log.read_text().rpartition("\n")[0] if log.exists() else ""
    lines = map(json.loads, written.splitlines())
    return {line["step"]: line["loss"] for line in lines if "loss" in line}


def wait_for(condition, processes, seconds: float = SECONDS) -> None:
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until and all(process.poll() is None for process in processes)
        time.sleep(0.01)


@pytest.fixture(scope="module")
def whole(data, tmp_path_factory) -> pathlib.Path:
    """A run that nothing disturbed."""
    run = tmp_path_factory.mktemp("runs") / "whole"
    for code, said in ended(start(data, run)):
        assert code == 0, said[-2000:]
    return run


@pytest.mark.slow
@pytest.mark.parametrize("victim", [0, 1])
def test_killing_one_ends_the_other_and_both_go_on(data, whole, tmp_path, victim):
    broken = tmp_path / "broken"
    processes = start(data, broken)
    wait_for(lambda: 41 in log_of(broken), processes)  # several checkpoints are whole by then
    processes[victim].send_signal(signal.SIGKILL)
    killed = time.monotonic()
    codes = ended(processes)
    assert time.monotonic() - killed < 60
    assert codes[victim][0] == -signal.SIGKILL
    code, said = codes[1 - victim]
    # 75, or JAX's own watchdog was quicker: abort.
    assert code in (75, -signal.SIGABRT), said[-2000:]
    assert ("another process of this fit" if code == 75 else "another task died") in said
    for code, said in ended(start(data, broken, "--resume")):
        assert code == 0, said[-2000:]
    assert log_of(broken) == log_of(whole) and set(log_of(whole)) == set(range(1, STEPS + 1))
    assert eqx.tree_equal(sg.load(broken), sg.load(whole))
    assert {path.name for path in broken.iterdir()} == {path.name for path in whole.iterdir()}


@pytest.mark.slow
@pytest.mark.parametrize("told", [0, 1])
def test_telling_one_to_stop_stops_both_and_both_go_on(data, whole, tmp_path, told):
    run = tmp_path / "stopped"
    processes = start(data, run)
    wait_for(lambda: 11 in log_of(run), processes)
    processes[told].send_signal(signal.SIGTERM)
    for code, said in ended(processes):
        assert code == 128 + signal.SIGTERM and "stopped by SIGTERM" in said, said[-2000:]
    last = max(log_of(run))
    assert last < STEPS and (run / "checkpoints" / f"{last:08d}.sg").exists()
    for code, said in ended(start(data, run, "--resume")):
        assert code == 0, said[-2000:]
    assert log_of(run) == log_of(whole)
    assert eqx.tree_equal(sg.load(run), sg.load(whole))


# --- What is refused


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--num-processes", "2"], "need --distributed"),
        (["--distributed"], "--distributed needs --out"),
    ],
)
def test_flags_that_do_not_fit_together(data, tmp_path, monkeypatch, capsys, flags, words):
    monkeypatch.chdir(tmp_path)
    refused(["fit", data, *flags], capsys, words)
    assert not list(tmp_path.iterdir())


def test_missing_cluster_is_said(data, tmp_path):
    """In a process of its own, because it begins to join."""
    command = [sys.executable, "-m", "scenegraph", "fit", str(data), "--distributed", "--out"]
    done = subprocess.run(
        [*command, str(tmp_path / "run")], capture_output=True, text=True, timeout=SECONDS
    )
    assert done.returncode == 2 and not list(tmp_path.iterdir())
    assert "found no cluster" in done.stderr and "give --coordinator HOST:PORT" in done.stderr
