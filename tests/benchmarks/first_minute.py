"""A newcomer's first minute: seconds to each phase of a fit, steps and scores, twice in a row.

The first time nothing is remembered: a fresh environment, no compiled programs, no decoded
pictures. The second time all is.
"""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
from typing import Any

from measure import report


ROOT = pathlib.Path(__file__).parents[2]
# How the lines begin that end a phase, and the names under which their times are reported.
PHASES = {
    "reading pictures": "pictures_read",
    "finding the box": "box_found",
    "compiling a step": "first_step",
    "wrote ": "scored",
}


def main(
    seconds: float = 60.0,
    things: pathlib.Path | None = None,
    environment: bool = True,
    out: pathlib.Path = pathlib.Path("docs/benchmarks/first-minute.json"),
) -> None:
    """Fits the library's own data, the chair at 200 x 200, and `things`, a folder from `data make`.

    With `--no-environment`, the present one is used instead of a fresh one.
    """
    # Figures of `things`, from a run before, stay.
    before = json.loads(out.read_text()) if out.exists() else {}
    figures: dict[str, Any] = before | {"limit": seconds}
    with tempfile.TemporaryDirectory() as name:
        work = pathlib.Path(name)
        program = [sys.executable, "-m", "scenegraph"]
        if environment:
            begin = time.monotonic()
            program = _install(work / "environment")
            figures["install"] = round(time.monotonic() - begin, 1)
        chair = pathlib.Path(os.environ["SCENEGRAPH_DATA"]) / "chair"
        fits = {"readme": [], "chair": [str(chair), "--downscale", "4"]}
        fits |= {} if things is None else {"things": [str(things)]}
        for fit, arguments in fits.items():
            command = [*program, "fit", *arguments, "--max-time", f"{seconds:g}s"]
            caches = {"XDG_CACHE_HOME": str(work / fit)}
            figures[fit] = {
                when: _timed_fit([*command, "--out", str(work / f"{fit}-{when}")], caches)
                for when in ("from_nothing", "again")
            }
    report(out, figures)


def _install(folder: pathlib.Path) -> list[str]:
    """Makes an environment with the library in it; returns the command that runs it."""
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    install = [folder / "bin" / "pip", "install", "--quiet", str(ROOT)]
    subprocess.run(install, check=True)
    return [str(folder / "bin" / "scenegraph")]


def _timed_fit(command: list[str], caches: dict[str, str]) -> dict[str, Any]:
    """Runs a fit, and notes when the lines come that end its phases."""
    environment = {x: y for x, y in os.environ.items() if x not in _CACHES} | caches
    begin, seen = time.monotonic(), {}
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stderr is not None
        for line in process.stderr:
            for start, phase in PHASES.items():
                if line.startswith(start) and phase not in seen:
                    seen[phase] = round(time.monotonic() - begin, 1)
    run = pathlib.Path(command[command.index("--out") + 1])
    seen["whole"] = round(time.monotonic() - begin, 1)
    metrics = json.loads((run / "metrics.json").read_text())
    logged = (run / "metrics.jsonl").read_text().splitlines()
    steps = max(int(re.search(r'"step": (\d+)', line)[1]) for line in logged)  # pyright: ignore
    return {
        **seen,
        "exit": process.returncode,
        "steps": steps,
        "psnr": round(metrics["psnr"], 2),
        "pictures_scored": len(metrics["per_image"]),
        "film": (run / "turntable.gif").exists(),
    }


_CACHES = ("JAX_COMPILATION_CACHE_DIR", "SCENEGRAPH_CACHE", "XDG_CACHE_HOME")
