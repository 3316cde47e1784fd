"""Times of sixty pictures and sixty gradients in a row, by a user's own `eqx.filter_jit`."""

import json
import pathlib
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from many_scene import camera, ours, SIZE
from measure import report

import scenegraph as sg


SCENES = {"10 spheres": ("spheres", 10), "100 boxes": ("boxes", 100), "six kinds": ("mixture", 100)}


def main(
    calls: int = 60,
    out: pathlib.Path = pathlib.Path("docs/benchmarks/in-a-row.json"),
    picture: pathlib.Path = pathlib.Path("docs/pictures/in-a-row.png"),
) -> None:
    """Measures each scene in a new process without compiled programs, and draws the times."""
    figures: dict[str, Any] = {}
    for name, (kind, count) in SCENES.items():
        command = [sys.executable, __file__, kind, str(count), str(calls)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        figures[name] = json.loads(done.stdout.splitlines()[-1])
        report(out, figures)
    draw(figures, picture)


def draw(figures: dict[str, Any], out: pathlib.Path) -> None:
    """Draws milliseconds over the number of the call, both axes logarithmic."""
    from matplotlib.figure import Figure

    page = Figure((8, 3), layout="constrained")
    for axes, what in zip(page.subplots(1, 2, sharey=True), ("picture", "gradient"), strict=True):
        for name in SCENES:
            times = figures[name][what]
            axes.plot(range(1, len(times) + 1), times, ".-", label=name, markersize=3, linewidth=1)
        axes.set(xscale="log", yscale="log", xlabel=f"{what} number")
        axes.grid(alpha=0.3)
        axes.legend(fontsize=7)
    page.axes[0].set_ylabel("milliseconds")
    page.savefig(out, dpi=100)


def measure(kind: Any, count: int, calls: int) -> dict[str, list[float]]:
    """Milliseconds of each of the calls, the first with compilation."""
    scene, eye = ours(kind, count), camera(SIZE)
    draw_picture = eqx.filter_jit(lambda scene: sg.render(scene, eye).rgb)
    differentiate = eqx.filter_jit(
        eqx.filter_grad(lambda scene: jnp.mean(sg.render(scene, eye).rgb))
    )
    return {
        "picture": [_milliseconds(draw_picture, scene) for _ in range(calls)],
        "gradient": [_milliseconds(differentiate, scene) for _ in range(calls)],
    }


def _milliseconds(call: Callable[[Any], Any], scene: sg.Scene) -> float:
    begin = time.perf_counter()
    jax.block_until_ready(jax.tree.leaves(call(scene)))
    return round(1e3 * (time.perf_counter() - begin), 2)


if __name__ == "__main__":
    print(json.dumps(measure(sys.argv[1], *map(int, sys.argv[2:]))))
