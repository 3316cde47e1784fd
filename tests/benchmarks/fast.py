"""The fast field against the clock: fresh processes, everything counted, views never seen."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from measure import report, timed

import scenegraph as sg


RUN = pathlib.Path(__file__).parent / "fast_run.py"
# Seconds, and the decibels that are due by then: at 200 x 200 and at 100 x 100 pixels.
GOALS = {4: {40: 30.0, 90: 32.0, 180: 33.5}, 8: {30: 28.0}}


def main(
    runs: int = 3,
    curves: float = 120.0,
    out: pathlib.Path = pathlib.Path("docs/benchmarks/fast.json"),
) -> None:
    """Fits the chair; with `--curves 0` without the slow presets' curves."""
    figures: dict[str, Any] = {"calibration_seconds": _calibration(), "fits": []}
    for downscale, goals in GOALS.items():
        for seconds, due in goals.items():
            options = {"seconds": seconds, "downscale": downscale, "picture": seconds == 90}
            fits = [_run(**options) for _ in range(runs)]
            one = {"downscale": downscale, "seconds": seconds, "due": due, "fits": fits}
            one["median_psnr"] = float(np.median([fit["psnr"] for fit in fits]))
            figures["fits"].append(one)
            print(json.dumps({**one, "fits": len(fits)}), flush=True)
    if curves > 0:
        figures["curves"] = {name: _curve(name, curves) for name in ("fast", "tiny", "mipnerf")}
        _plot(figures["curves"], out.parent.parent / "pictures" / "fast-curves.png")
    figures |= {"step_milliseconds": _costs(), "listing": _listing()}
    figures["calibration_seconds_after"] = _calibration()
    report(out, figures)


def again(
    runs: int = 3,
    seconds: float = 15.0,
    downscale: int = 8,
    out: pathlib.Path = pathlib.Path("docs/benchmarks/fast-again.json"),
) -> None:
    """The same with the compiled programs of earlier fits, as `scenegraph fit` remembers them."""
    figures: dict[str, Any] = {"calibration_seconds": _calibration()}
    with tempfile.TemporaryDirectory() as folder:
        memory = {
            "JAX_COMPILATION_CACHE_DIR": folder,
            "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        }
        for _ in range(2):  # The first may end before it has come to all programs.
            _run(memory, seconds=2 * seconds, downscale=downscale)
        fits = [_run(memory, seconds=seconds, downscale=downscale) for _ in range(runs)]
    median = float(np.median([fit["psnr"] for fit in fits]))
    figures |= {"downscale": downscale, "seconds": seconds, "fits": fits, "median_psnr": median}
    report(out, figures)


def _run(environment: Mapping[str, str] = MappingProxyType({}), **options: Any) -> dict[str, Any]:
    flags = [_flag(name.replace("_", "-"), value) for name, value in options.items()]
    done = subprocess.run(
        [sys.executable, str(RUN), *flags],
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
    )
    return json.loads(done.stdout.splitlines()[-1])


def _flag(name: str, value: Any) -> str:
    if isinstance(value, bool):
        return f"--{name}" if value else f"--no-{name}"
    return f"--{name}={value}"


def _curve(name: str, seconds: float) -> list[list[float]]:
    fit = _run(preset_name=name, seconds=seconds, look_every=seconds / 12)
    return fit["curve"]


def _calibration() -> float:
    """A fixed job of the kinds that matter here: products, gathers and scattered sums."""
    table = jax.random.normal(jax.random.key(0), (2**19, 4))
    rows = jax.random.randint(jax.random.key(1), (2**19,), 0, 2**19)
    weights = jax.random.normal(jax.random.key(2), (64, 64))

    @jax.jit
    def job(table: jax.Array) -> jax.Array:
        read = table[rows].reshape(-1, 64)
        for _ in range(8):
            read = jnp.tanh(read @ weights)
        return table.at[rows].add(read.reshape(-1, 4))

    begin = time.perf_counter()
    timed(lambda: job(table), 40)
    return time.perf_counter() - begin


def _costs() -> dict[str, dict[int, float]]:
    """Milliseconds of value and gradient of a batch, by the cells of the occupancy and by the room
    for samples. The occupancy knows nothing, so that every sample there is room for is asked."""
    cells = {n: _cost(n, 16) for n in (16, 32, 64, 128)}
    room = {budget: _cost(64, budget) for budget in (8, 16, 32, 64)}
    return {"occupancy_cells": cells, "samples_a_ray": room}


def _cost(cells: int, budget: int, rays: int = 2048) -> float:
    key = jax.random.key(0)
    field = sg.fields.GridField(sg.encodings.Grid(key=key), key=key)
    box = sg.Box([-1.0] * 3, [1.0] * 3)
    occupancy = sg.scene.Occupancy.everywhere(cells)
    scene = sg.Scene(sg.Group(field=sg.Volume(field, box, occupancy=occupancy)))
    camera = sg.PerspectiveCamera.look_at([0, -3, 1], [0] * 3, [0, 0, 1], 0.5, rays // 32, 32)
    many = sg.data.pixel_rays(camera)
    march = sg.integrators.OccupancyMarch(budget, budget)

    batch = sg.data.Batch(many, jnp.zeros((rays, 3)), jnp.ones(rays))
    loss = sg.fitting.RenderLoss(integrator=march)

    @eqx.filter_jit
    def step(scene: sg.Scene) -> Any:
        return eqx.filter_value_and_grad(lambda s: loss(s, None, batch, key), has_aux=True)(scene)

    return 1e3 * timed(lambda: step(scene), 20).median


def _listing() -> dict[str, float]:
    """Milliseconds to list what is true in a fiftieth of 2^18 entries, room for 8,192."""
    mask = jnp.asarray(np.random.default_rng(0).uniform(size=2**18) < 0.02)
    ours = jax.jit(lambda mask: sg.numerics.compact(mask, 2**13))
    numpys = jax.jit(lambda mask: jnp.nonzero(mask, size=2**13, fill_value=0))
    return {
        "compact": 1e3 * timed(lambda: ours(mask), 100).median,
        "nonzero": 1e3 * timed(lambda: numpys(mask), 100).median,
    }


def _plot(curves: dict[str, list[list[float]]], path: pathlib.Path) -> None:
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
    for name, points in curves.items():
        seconds, psnr = np.transpose(points)
        axes.plot(seconds, psnr, marker=".", label=name)
    axes.set(
        xlabel="seconds from the start of the process",
        ylabel="PSNR of 2,048 pixels of test views in dB",
    )
    axes.set(xscale="log", title="chair, 200 x 200 pixels, two cores")
    axes.grid(alpha=0.3, which="both")
    axes.legend()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120)
