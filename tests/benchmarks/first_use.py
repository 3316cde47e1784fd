"""What a new process costs: importing, `--help`, the first picture, and the shape checks."""

import os
import pathlib
import subprocess
import sys
import time

import numpy as np
from measure import report


SCENE = """
import time
begin = time.perf_counter()
import scenegraph as sg, jax, jax.numpy as jnp, equinox as eqx
imported = time.perf_counter()
field = sg.fields.MipNerfMLP(width=64, depth=4, key=jax.random.key(0))
scene = sg.Scene(sg.Group(thing=sg.Volume(field)), background=sg.Constant([1.0, 1.0, 1.0]))
camera = sg.PerspectiveCamera.look_at(
    eye=[0.0, -4.0, 1.0], target=[0.0, 0.0, 0.0], up=[0.0, 0.0, 1.0], fov_x=0.7, width=64, height=48
)
made = time.perf_counter()
"""
PICTURE = SCENE + "sg.render(scene, camera).rgb.block_until_ready(); end = time.perf_counter()"
TRACE = SCENE + (
    "loss = lambda s: jnp.mean(sg.render(s, camera).rgb ** 2)\n"
    "eqx.filter_jit(eqx.filter_grad(loss)).lower(scene); end = time.perf_counter()"
)


def main(runs: int = 5, out: pathlib.Path = pathlib.Path("docs/benchmarks/first-use.json")) -> None:
    """Times fresh processes; medians, in seconds."""
    bare = _whole([sys.executable, "-c", "import jax, equinox, optax"], runs)
    ours = _whole([sys.executable, "-c", "import scenegraph"], runs)
    checked, unchecked = (_part(TRACE, "end - made", runs, switch) for switch in "10")
    report(
        out,
        {
            "import_dependencies": bare,
            "import_scenegraph": ours,
            "import_ratio": ours / bare,
            "help": _whole([sys.executable, "-m", "scenegraph", "--help"], runs),
            "first_picture": _part(PICTURE, "end - begin", runs),
            "trace_gradient_with_shape_checks": checked,
            "trace_gradient_without": unchecked,
        },
    )


def _whole(command: list[str], runs: int) -> float:
    seconds = []
    for _ in range(runs + 1):
        begin = time.perf_counter()
        subprocess.run(command, check=True, capture_output=True)
        seconds.append(time.perf_counter() - begin)
    return float(np.median(seconds[1:]))


def _part(script: str, span: str, runs: int, checks: str = "1") -> float:
    command = [sys.executable, "-c", f"{script}\nprint({span})"]
    environment = {**os.environ, "SCENEGRAPH_TYPECHECK": checks}
    texts = [
        subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout
        for _ in range(runs)
    ]
    return float(np.median([float(text) for text in texts]))
