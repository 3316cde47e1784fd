"""Meshes: seconds and memory of pictures and of gradients of all vertices, over their faces."""

import json
import os
import pathlib
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from measure import report
from meshes_scene import camera, ours

import scenegraph as sg


FOLDER = pathlib.Path(__file__).parent


def main(
    counts: tuple[int, ...] = (1_000, 10_000, 100_000, 1_000_000),
    gradients: tuple[int, ...] = (1_000, 10_000, 100_000, 1_000_000),
    out: pathlib.Path = pathlib.Path("docs/benchmarks/meshes.json"),
) -> None:
    """Prints and writes figures, each mesh in a process of its own, with no compiled programs.

    Beside Mitsuba 3, if it is there: on a CPU it needs `DRJIT_LIBLLVM_PATH`.
    """
    # Figures of other counts, from runs before, stay.
    figures: dict[str, Any] = json.loads(out.read_text()) if out.exists() else {}
    for count in counts:
        name = f"{count} faces"
        known = figures.get(name, {})
        figures[name] = known | _in_process("meshes.py", count, int(count in gradients))
        report(out, figures)
        figures[name] |= _in_process("meshes_mitsuba.py", count)
        report(out, figures)


def _in_process(script: str, *arguments: Any) -> dict[str, Any]:
    """Runs one measurement alone; without figures if what it needs is not there."""
    command = [sys.executable, str(FOLDER / script), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        place = os.environ.get("DRJIT_LIBLLVM_PATH", "not set")
        print(f"{script} failed (DRJIT_LIBLLVM_PATH: {place}): {done.stderr.strip()[-300:]}")
        return {}
    # Mitsuba's messages end with codes of colour.
    last = done.stdout.splitlines()[-1]
    return json.loads(last[last.index("{") :])


def measure(count: int, with_gradient: bool) -> dict[str, float]:
    """Milliseconds of a picture and of the gradient of vertices, and what they take at first."""
    scene, eye = ours(count), camera()
    faces = scene["ring.shape.faces"].shape[0]
    figures: dict[str, float] = {"faces": faces, "load": os.getloadavg()[0]}
    figures |= _timed("picture", lambda: sg.render(scene, eye).rgb)
    figures["overflowing_pixels"] = int(jnp.sum(sg.render(scene, eye).overflow > 0))
    if not with_gradient:
        return figures

    def slope(vertices: jax.Array) -> jax.Array:
        moved = eqx.tree_at(lambda s: s["ring.shape"].vertices, scene, vertices)
        return jnp.mean(sg.render(moved, eye).rgb ** 2)

    gradient = eqx.filter_jit(jax.grad(slope))
    vertices = scene["ring.shape"].vertices
    return figures | _timed("gradient", lambda: gradient(vertices))


def _timed(name: str, call: Callable[[], Any]) -> dict[str, float]:
    """Times the first call, and the best of some more: on a busy machine, see processor times."""

    def seconds() -> tuple[float, float]:
        begin, used = time.perf_counter(), time.process_time()
        jax.block_until_ready(jax.tree.leaves(call()))
        return time.perf_counter() - begin, time.process_time() - used

    first = seconds()
    again = [seconds() for _ in range(3)]
    walls, processor = zip(*again, strict=True)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {
        f"{name}_milliseconds": 1e3 * min(walls),
        f"{name}_processor_milliseconds": 1e3 * min(processor),
        f"first_{name}_seconds": first[0],
        f"first_{name}_processor_seconds": first[1],
        f"{name}_peak_memory_mib": round(peak / 1024),
    }


if __name__ == "__main__":
    print(json.dumps(measure(int(sys.argv[1]), bool(int(sys.argv[2])))))
