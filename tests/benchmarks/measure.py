"""Timing on a shared machine: many short runs, CPU seconds beside seconds, the load noted."""

import dataclasses
import json
import os
import pathlib
import platform
import resource
import time
from collections.abc import Callable
from typing import Any

import jax
import numpy as np


@dataclasses.dataclass(frozen=True)
class Timing:
    """Seconds of one call: the median and the least, and CPU seconds of all threads."""

    median: float
    least: float
    cpu: float


def timed(call: Callable[[], Any], runs: int) -> Timing:
    """Times a compiled call, which is run once first."""
    jax.block_until_ready(call())
    walls, cpus = [], []
    for _ in range(runs):
        wall, cpu = time.perf_counter(), time.process_time()
        jax.block_until_ready(call())
        walls.append(time.perf_counter() - wall)
        cpus.append(time.process_time() - cpu)
    return Timing(float(np.median(walls)), min(walls), float(np.median(cpus)))


def matrix_rate(runs: int = 40) -> float:
    """Floating-point operations a second of a plain 4096 x 256 x 256 product, at its best."""
    a = jax.random.normal(jax.random.key(0), (4096, 256))
    b = jax.random.normal(jax.random.key(1), (256, 256))
    product = jax.jit(lambda a, b: a @ b)
    return 2 * 4096 * 256 * 256 / timed(lambda: product(a, b), runs).least


def machine() -> dict[str, Any]:
    """What the figures were measured on."""
    return {
        "processor": platform.processor() or platform.machine(),
        "cores": os.cpu_count(),
        "device": str(jax.devices()[0]),
        "jax": jax.__version__,
        "python": platform.python_version(),
        "load": [round(x, 2) for x in os.getloadavg()],
        "peak_memory_mib": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
    }


def report(path: pathlib.Path, figures: dict[str, Any]) -> None:
    """Prints figures and writes them as JSON."""
    text = json.dumps({**figures, "machine": machine()}, indent=2)
    print(text)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text + "\n")
