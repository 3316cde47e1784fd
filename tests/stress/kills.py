"""A fit that is killed again and again, and resumed, ends as one that was left alone."""

import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
from typing import Any

import numpy as np

from scenegraph.io import read_archive
from scenegraph.runs import open_run, read_log
from support.blender_folder import write_ball


# The fast preset, small: samples share room, which is found, and the occupancy is looked at again.
FLAGS = (
    "--batch-size 64 --width 8 --resolutions 4 8 --capacity 512 --occupancy 8 --candidates 12 "
    "--log-every 5 --eval-every 40 --save-every 15 --keep 2"
).split()
COMMAND = "import sys; from scenegraph.cli import main; sys.exit(main(sys.argv[1:]))"
ROOT = pathlib.Path(__file__).parent.parent.parent


def start(folder: pathlib.Path, *arguments: str) -> subprocess.Popen:
    """A fit in a process of its own, which remembers what it has compiled."""
    cache = {
        "JAX_COMPILATION_CACHE_DIR": str(folder / "cache"),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    }
    with (folder / "stderr").open("a") as log:
        return subprocess.Popen(
            [sys.executable, "-c", COMMAND, "fit", *arguments],
            stdout=log,
            stderr=log,
            cwd=ROOT,
            env={**os.environ, **cache},
        )


def lines_in(path: pathlib.Path) -> int:
    return path.read_bytes().count(b"\n") if path.exists() else 0


def kill_somewhere(process: subprocess.Popen, log: pathlib.Path, rng: np.random.Generator) -> bool:
    """Kills at a random moment: now and then while it starts, mostly while it fits or saves."""
    until = time.monotonic() + (rng.uniform(0.5, 10) if rng.uniform() < 0.3 else 600)
    more = lines_in(log) + int(rng.integers(1, 12))
    while time.monotonic() < until and process.poll() is None and lines_in(log) < more:
        time.sleep(0.002)
    time.sleep(rng.uniform(0, 0.05))
    alive = process.poll() is None
    process.send_signal(signal.SIGKILL)
    process.wait()
    return alive


def ending(folder: pathlib.Path) -> dict[str, Any]:
    """What a run ends with: all of its state, its log but for times, and which checkpoints stay."""
    run = open_run(folder)
    paths = run.checkpoints().paths()
    header, arrays = read_archive(paths[-1])
    dropped = ("seconds", "rays_per_second")
    log = [{k: v for k, v in x.items() if k not in dropped} for x in read_log(run.log)]
    return {
        "names": [path.name for path in paths],
        "leaves": header["leaves"],
        "arrays": [array.tobytes() for array in arrays],
        "log": log,
    }


def arguments_for(data: pathlib.Path, run: pathlib.Path, steps: int) -> list[str]:
    """To begin, and to go on: one command."""
    return [str(data), "--out", str(run), "--steps", str(steps), *FLAGS, "--resume"]


def one_kill_each(runs: int = 20, steps: int = 100) -> dict[str, Any]:
    """Runs killed once at any time from half a second after their start, then started again."""
    rng, moments = np.random.default_rng(1), []
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        data = write_ball(folder / "data", {"train": 6, "test": 2})
        for warm in (True, False):  # The second has all programs compiled, as the killed ones do.
            begin = time.monotonic()
            whole = folder / f"whole{warm}"
            assert start(folder, *arguments_for(data, whole, steps)).wait() == 0
        span = time.monotonic() - begin
        for number in range(runs):
            run, moment = folder / f"killed{number}", rng.uniform(0.5, span)
            process = start(folder, *arguments_for(data, run, steps))
            time.sleep(moment)
            process.kill()
            process.wait()
            saved = [int(path.stem[:8]) for path in open_run(run).checkpoints().paths()]
            moments.append((round(moment, 1), max(saved, default=None)))
            assert start(folder, *arguments_for(data, run, steps)).wait() == 0, (
                folder / "stderr"
            ).read_text()[-2000:]
            assert ending(run) == ending(whole), f"killed after {moment} s, it ended otherwise"
    return {"runs": runs, "steps": steps, "seconds_and_saved_steps_at_kills": moments}


def main(kills: int = 50, steps: int = 600, others: int = 20) -> dict[str, Any]:
    """So many times `kill -9`, as many fits as that takes; and others that are killed once each."""
    rng, begin, done, runs = np.random.default_rng(0), time.perf_counter(), 0, 0
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        data = write_ball(folder / "data", {"train": 6, "test": 2})
        left_alone = folder / "whole"
        assert start(folder, *arguments_for(data, left_alone, steps)).wait() == 0
        whole = ending(left_alone)
        assert [x["step"] for x in whole["log"] if "loss" in x] == list(range(5, steps + 1, 5))
        at = []
        while done < kills:
            run = folder / f"killed{runs}"
            while True:
                process = start(folder, *arguments_for(data, run, steps))
                if done >= kills:
                    assert process.wait() == 0, (folder / "stderr").read_text()[-2000:]
                    break
                if not kill_somewhere(process, run / "metrics.jsonl", rng):
                    assert process.returncode == 0, (folder / "stderr").read_text()[-2000:]
                    break
                done += 1
                at.append(lines_in(run / "metrics.jsonl"))
            assert ending(run) == whole, "a killed fit ended otherwise"
            runs += 1
    return {
        "kills": done,
        "fits": runs,
        "steps": steps,
        "leaves": len(whole["leaves"]),
        "lines_of_log_at_kills": at,
        "one_kill_each": one_kill_each(others),
        "seconds": round(time.perf_counter() - begin, 1),
    }
