"""The chair at its full 800 x 800 pixels, after 5, 15 and 60 minutes from nothing."""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
from typing import Any

from measure import report


# Published for this scene on one A100: seconds, and PSNR in decibels.
PUBLISHED = {
    "Instant NGP": [168, 35.00],
    "3D Gaussian Splatting": [344, 35.83],
    "TensoRF": [None, 35.76],
}


def main(
    minutes: tuple[float, ...] = (5.0, 15.0, 60.0),
    lpips_weights: pathlib.Path | None = None,
    out: pathlib.Path = pathlib.Path("docs/benchmarks/full-size.json"),
) -> None:
    """Fits with `--max-time`, each with caches of its own, and scores all 25 test pictures.

    LPIPS is measured where its weights are named. Figures of other lengths stay as they were.
    """
    before = json.loads(out.read_text()) if out.exists() else {}
    fits = before.get("fits", {})
    for length in minutes:
        with tempfile.TemporaryDirectory() as name:
            fits[f"{length:g}"] = _fit_and_score(pathlib.Path(name), length, lpips_weights)
        shown = dict(sorted(fits.items(), key=lambda pair: float(pair[0])))
        report(out, {"fits": shown, "published": PUBLISHED})


def _fit_and_score(work: pathlib.Path, minutes: float, weights: pathlib.Path | None) -> Any:
    """Fits in a process of its own, and reads what it wrote."""
    chair = pathlib.Path(os.environ["SCENEGRAPH_DATA"]) / "chair"
    environment = {x: y for x, y in os.environ.items() if x not in _CACHES}
    environment["XDG_CACHE_HOME"] = str(work / "cache")
    command = [sys.executable, "-m", "scenegraph"]
    fit = [*command, "fit", str(chair), "--out", str(work / "run"), "--max-time", f"{minutes:g}m"]
    memory = _run(fit, environment)
    metrics = json.loads((work / "run" / "metrics.json").read_text())
    on_time = len(metrics["per_image"])
    if weights is not None or on_time < metrics["protocol"]["of"]:
        named = [] if weights is None else ["--lpips-weights", str(weights)]
        _run([*command, "eval", str(work / "run"), *named], environment)
        metrics = json.loads((work / "run" / "metrics.json").read_text())
    logged = (work / "run" / "metrics.jsonl").read_text()
    return {
        "steps": max(map(int, re.findall(r'"step": (\d+)', logged))),
        "psnr": round(metrics["psnr"], 2),
        "ssim": round(metrics["ssim"], 3),
        "lpips": metrics["lpips"],
        "pictures_scored": len(metrics["per_image"]),
        "pictures_scored_on_time": on_time,
        "memory_gib": round(memory, 2),
    }


def _run(command: list[str], environment: dict[str, str]) -> float:
    """Runs a command to its end; returns the largest memory that it held, in GiB."""
    process = subprocess.Popen(command, env=environment)
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"{' '.join(command)} ended with status {status}")
    return usage.ru_maxrss / 2**20


_CACHES = ("JAX_COMPILATION_CACHE_DIR", "SCENEGRAPH_CACHE", "XDG_CACHE_HOME")
