"""Random paths beside Mitsuba 3: samples a second, and whether means are equal within noise."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
from typing import Any

import jax
import numpy as np
from measure import report
from path_scenes import BOUNCES, NAMES, ours

import scenegraph as sg


FOLDER = pathlib.Path(__file__).parent
# Pictures of which the variance is that of Mitsuba's; pixels along the side of a block.
PARTS, BLOCK = 8, 8


def main(
    size: int = 128,
    samples: int = 1024,
    scenes: tuple[str, ...] = NAMES,
    out: pathlib.Path = pathlib.Path("docs/benchmarks/path.json"),
) -> None:
    """Draws each scene by both in turn."""
    figures = {"size": size, "samples": samples, "bounces": BOUNCES}
    for name in scenes:
        figures[name] = _compare(name, size, samples)
        print(name, json.dumps(figures[name]), flush=True)
    report(out, figures)


def _compare(name: str, size: int, samples: int) -> dict[str, Any]:
    mean, variance, figures = _draw(name, size, samples)
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "theirs.npz"
        command = [sys.executable, str(FOLDER / "path_mitsuba.py"), name, str(size), str(samples)]
        done = subprocess.run(
            [*command, str(PARTS), str(file)],
            check=False,
            capture_output=True,
            text=True,
            env=os.environ | {"PYTHONPATH": str(FOLDER)},
        )
        if done.returncode:
            return figures | {"mitsuba": done.stderr.strip().splitlines()[-1]}
        seconds = json.loads(done.stdout.splitlines()[-1])
        other = dict(np.load(file))
    rate, by_cpu = (size**2 * seconds["samples"] / seconds[x] for x in ("one", "cpu"))
    blocks = lambda x: x.reshape(size // BLOCK, BLOCK, size // BLOCK, BLOCK, 3).mean((1, 3))
    spread = np.sqrt((blocks(variance) + blocks(other["variance"])) / BLOCK**2)
    # What has no noise may differ by a thousandth: panoramas have texels in other places.
    spread = np.maximum(spread, 1e-3 * blocks(mean))
    scores = (blocks(mean) - blocks(other["mean"])) / np.maximum(spread, 1e-6)
    return figures | {
        "mitsuba_samples_a_second": rate,
        "mitsuba_first_seconds": seconds["first"],
        "part_of_mitsuba": figures["samples_a_second"] / rate,
        # On a machine that others use, too, the time of the processor says more.
        "mitsuba_samples_a_cpu_second": by_cpu,
        "part_of_mitsuba_by_cpu": figures["samples_a_cpu_second"] / by_cpu,
        "mean_over_mitsuba": float(mean.mean() / other["mean"].mean()),
        "noise_over_mitsuba": float(np.sqrt(variance.mean() / other["variance"].mean())),
        # One if the pictures differ by their noise alone.
        "rms_score": float(np.sqrt(np.mean(scores**2))),
        "largest_score": float(np.max(np.abs(scores))),
    }


def _draw(name: str, size: int, samples: int) -> tuple[np.ndarray, np.ndarray, dict[str, Any]]:
    scene, camera = ours(name, size)
    path = sg.Path(samples=samples // PARTS, bounces=BOUNCES)
    means, variances, seconds, processor = [], [], [], []
    for k in range(PARTS + 1):
        begin, used = time.perf_counter(), time.process_time()
        image = sg.render(scene, camera, path, key=jax.random.key(k), outputs=["variance"])
        means.append(np.asarray(image.rgb, np.float64))
        seconds.append(time.perf_counter() - begin)
        processor.append(time.process_time() - used)
        variances.append(np.asarray(image.variance, np.float64))
    one = float(np.median(seconds[1:]))
    figures = {
        "samples_a_second": size**2 * path.samples / one,
        "samples_a_cpu_second": size**2 * path.samples / float(np.median(processor[1:])),
        "first_seconds": seconds[0],
    }
    return np.mean(means[1:], axis=0), np.mean(variances[1:], axis=0) / PARTS, figures
