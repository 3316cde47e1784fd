"""One training step of `mipnerf` with 256 rays: how near it comes to a plain product."""

import dataclasses
import pathlib
import time
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from measure import matrix_rate, report, timed

import scenegraph as sg


# What XLA counts for the published code: the work to be done, whatever is computed here.
OPERATIONS = {256: 2.38e11, 64: 1.85e10}
RAYS = 256


def main(runs: int = 10, out: pathlib.Path = pathlib.Path("docs/benchmarks/mipnerf.json")) -> None:
    """Times the paper's network and the 64-wide one."""
    rates, cases = [matrix_rate()], {}
    for width in (256, 64):
        cases[width] = _case(width, runs)
        rates.append(matrix_rate())
    for width, case in cases.items():
        case["share"] = OPERATIONS[width] / (case["seconds"]["median"] * max(rates))
        case["share_best"] = OPERATIONS[width] / (case["seconds"]["least"] * max(rates))
    gflops = [rate / 1e9 for rate in rates]
    report(out, {"matrix_gflops": gflops, "rays": RAYS, "width": cases})


def _case(width: int, runs: int) -> dict[str, Any]:
    config = sg.preset("mipnerf", width=width, view_width=width // 2, batch_size=RAYS)
    scene = sg.settings.make_scene(config, None, key=jax.random.key(0))
    loss, optimizer = config.training.make_loss(), config.training.make_optimizer()
    extra = sg.losses.LossTerms(jnp.zeros(2), jnp.zeros(2))
    state = sg.start_state(scene, optimizer, extra=extra, steps=1000, key=jax.random.key(1))
    advance = eqx.filter_jit(lambda s, b: sg.step(s, b, loss=loss, optimizer=optimizer))
    batch = _batch()
    begin = time.perf_counter()
    compiled = advance.lower(state, batch).compile()
    compiling = time.perf_counter() - begin
    step = timed(lambda: compiled(state, batch)[1].loss, runs)
    return {
        "seconds": dataclasses.asdict(step),
        "rays_per_second": RAYS / step.median,
        "trace_and_compile_seconds": compiling,
        "temporary_memory_mib": compiled.compiled.memory_analysis().temp_size_in_bytes / 2**20,
        "parameters": sg.scene.count_parameters(scene),
    }


def _batch() -> sg.data.Batch:
    """Rays of a camera at distance four, as in Blender data, and any colours."""
    camera = sg.PerspectiveCamera.look_at(
        [2.6, -2.6, 1.6], [0, 0, 0], [0, 0, 1], 0.69, 800, 800, near=2.0, far=6.0
    )
    key, color_key = jax.random.split(jax.random.key(2))
    pixels = jax.random.uniform(key, (RAYS, 2), maxval=800.0)
    rays = jax.vmap(camera.ray)(pixels)
    return sg.data.Batch(rays, jax.random.uniform(color_key, (RAYS, 3)), jnp.ones(RAYS))
