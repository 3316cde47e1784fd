"""Scenes of many things: seconds, memory, longest list and error, over their number."""

import json
import os
import pathlib
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from many_scene import camera, media, ours, SIZE
from measure import report

import scenegraph as sg


Kind = Literal[
    "spheres", "copies", "boxes", "capsules", "mixture", "lamps", "gallery", "volumes", "fields"
]
FOLDER = pathlib.Path(__file__).parent
# Pictures of more things are compared with fewer cones a pixel, or with none.
_REFERENCE = {1: 64, 10: 64, 100: 16, 1_000: 4}


def main(
    kinds: tuple[Kind, ...] = ("spheres",),
    counts: tuple[int, ...] = (1, 10, 100, 1_000, 10_000),
    out: pathlib.Path = pathlib.Path("docs/benchmarks/many.json"),
) -> None:
    """Prints and writes figures, each scene in a process of its own, with no compiled programs.

    Beside Mitsuba 3 for spheres, if it is there: on a CPU it needs `DRJIT_LIBLLVM_PATH`.
    """
    # Figures of other kinds and counts, from runs before, stay.
    figures: dict[str, Any] = json.loads(out.read_text()) if out.exists() else {}
    for kind in kinds:
        for count in (1,) if kind == "gallery" else counts:
            name = f"{count} {kind}"
            figures[name] = _in_process("many.py", kind, count)
            if kind == "spheres":
                figures[name] |= _in_process("many_mitsuba.py", count)
            report(out, figures)


def _in_process(script: str, *arguments: Any) -> dict[str, Any]:
    """Runs one measurement alone; without figures if what it needs is not there."""
    command = [sys.executable, str(FOLDER / script), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        place = os.environ.get("DRJIT_LIBLLVM_PATH", "not set")
        print(f"{script} failed (DRJIT_LIBLLVM_PATH: {place}): {done.stderr.strip()[-300:]}")
        return {}
    return json.loads(done.stdout.splitlines()[-1])


def measure(kind: Kind, count: int) -> dict[str, float]:
    """Milliseconds of a picture and of the gradient of all leaves, and what they take at first."""
    scene, eye = _scene(kind, count)
    figures: dict[str, float] = {}
    picture = lambda: sg.render(scene, eye).rgb
    figures |= _timed("picture", picture)
    figures |= _memory("picture")
    if kind in ("gallery", "volumes", "fields"):
        return figures | _gradient(scene, eye)
    # Before the reference, whose memory is not that of a picture or a gradient.
    figures |= _gradient(scene, eye)
    lists = sg.render(scene, eye, outputs=["candidates"]).candidates
    figures["longest_list"] = int(jnp.max(lists)) if lists is not None else 0
    if samples := _REFERENCE.get(count):
        truth = sg.render(scene, eye, samples_per_pixel=samples).rgb
        figures["rms_error"] = float(jnp.sqrt(jnp.mean((truth - picture()) ** 2)))
    return figures


def _gradient(scene: sg.Scene, eye: sg.PerspectiveCamera) -> dict[str, float]:
    slopes = eqx.filter_jit(eqx.filter_grad(lambda s: jnp.mean(sg.render(s, eye).rgb ** 2)))
    return _timed("gradient", lambda: slopes(scene)) | _memory("gradient")


def _scene(kind: Kind, count: int) -> tuple[sg.Scene, sg.PerspectiveCamera]:
    if kind == "gallery":
        eye = sg.PerspectiveCamera.look_at([0, -7, 4], [0, 0, 0.5], [0, 0, 1], 0.8, 320, 200)
        return sg.diagnostics.gallery_scene(), eye
    if kind in ("volumes", "fields"):
        return media(kind, count), camera(128)
    return ours(kind, count), camera(SIZE)


def _timed(name: str, call: Callable[[], Any]) -> dict[str, float]:
    def seconds() -> float:
        begin = time.perf_counter()
        jax.block_until_ready(jax.tree.leaves(call()))
        return time.perf_counter() - begin

    processor, first = time.process_time(), seconds()
    processor = time.process_time() - processor
    again = [seconds() for _ in range(3)]
    while len(again) < 12 and sum(again) < 5:
        again.append(seconds())
    return {
        f"{name}_milliseconds": 1e3 * min(again),
        f"{name}_median_milliseconds": 1e3 * float(np.median(again)),
        f"first_{name}_seconds": first,
        f"first_{name}_processor_seconds": processor,
    }


def _memory(name: str) -> dict[str, float]:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {f"{name}_peak_memory_mib": round(peak / 1024)}


if __name__ == "__main__":
    print(json.dumps(measure(sys.argv[1], int(sys.argv[2]))))  # type: ignore[arg-type]
