"""The memory that a large picture and the gradient of one take, with the paper's network."""

import pathlib
import time
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from measure import report

import scenegraph as sg


def main(
    render_size: int = 800,
    gradient_size: int = 200,
    run: bool = False,
    out: pathlib.Path = pathlib.Path("docs/benchmarks/memory.json"),
) -> None:
    """What XLA sets aside for both; with `--run`, they are computed too, which takes long."""
    figures = {
        f"render_{render_size}": _needs(_picture, render_size, run),
        f"gradient_{gradient_size}": _needs(eqx.filter_grad(_brightness), gradient_size, run),
    }
    report(out, figures)


def _needs(function: Callable, size: int, run: bool) -> dict[str, Any]:
    field = sg.fields.MipNerfMLP(key=jax.random.key(0))
    tree, levels = sg.Group(thing=sg.Volume(field, None)), sg.Hierarchical((128, 128))
    scene = sg.Scene(tree, background=[1.0, 1.0, 1.0], integrator=levels)
    camera = sg.PerspectiveCamera.look_at(
        [0, -4, 1], [0, 0, 0], [0, 0, 1], 0.7, size, size, near=2.0, far=6.0
    )
    compiled = eqx.filter_jit(function).lower(scene, camera).compile()
    needs = compiled.compiled.memory_analysis()
    figures = {
        "temporary_mib": needs.temp_size_in_bytes / 2**20,
        "result_mib": needs.output_size_in_bytes / 2**20,
    }
    if run:
        begin = time.perf_counter()
        jax.block_until_ready(compiled(scene, camera))
        figures["seconds"] = time.perf_counter() - begin
    return figures


def _picture(scene: sg.Scene, camera: sg.PerspectiveCamera) -> jax.Array:
    return sg.render(scene, camera).rgb


def _brightness(scene: sg.Scene, camera: sg.PerspectiveCamera) -> jax.Array:
    return jnp.mean(_picture(scene, camera) ** 2)
