"""Compile time and time of a picture and its gradient, by the number of equal volumes or lights."""

import json
import pathlib
import subprocess
import sys
import time

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

import scenegraph as sg


COUNTS = {"volumes": (1, 10, 100), "lights": (1, 4, 16)}


def main(out: pathlib.Path = pathlib.Path("docs/benchmarks/instances.json")) -> None:
    """Prints and writes seconds, each scene in a process of its own, with no compiled programs."""
    figures = {}
    for kind, counts in COUNTS.items():
        for count in counts:
            command = [sys.executable, __file__, kind, str(count)]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            figures[f"{count} {kind}"] = json.loads(done.stdout)
            print(f"{count:4} {kind}", figures[f"{count} {kind}"], flush=True)
    out.write_text(json.dumps(figures, indent=1) + "\n")


def scene_of(kind: str, count: int) -> sg.Scene:
    """Blobs at random places, or a ball on a floor under lamps at random places."""
    places = np.random.default_rng(0).uniform(-1, 1, (count, 3))
    if kind == "volumes":
        blob = lambda at: sg.fields.GaussianBlob(at, 0.3, 4.0, [0.8, 0.3, 0.2])
        blobs = {f"b{i}": sg.Volume(blob(at)) for i, at in enumerate(places)}
        return sg.Scene(sg.Group(**blobs), integrator=sg.Hierarchical((32,)))
    lamps = {
        f"l{i}": sg.PointLight(4 * at + [0.0, 0.0, 6.0], np.full(3, 20.0 / count))
        for i, at in enumerate(places)
    }
    floor = sg.Surface(sg.Plane(), sg.Lambert(sg.Checker(2.0)))
    ball = sg.Surface(sg.Sphere([0.0, 0.0, 0.5], 0.5), sg.Lambert([0.2, 0.8, 0.3]))
    return sg.Scene(sg.Group(floor=floor, ball=ball, **lamps))


def measure(kind: str, count: int) -> dict[str, float]:
    """Wall and processor seconds of the first picture and gradient, and the best of some later."""
    size = 64 if kind == "volumes" else 128
    camera = sg.PerspectiveCamera.look_at([0, -4, 1.5], [0, 0, 0], [0, 0, 1], 0.7, size, size)
    scene = scene_of(kind, count)
    picture = lambda scene: sg.render(scene, camera).rgb
    gradient = eqx.filter_jit(eqx.filter_grad(lambda s: jnp.mean(sg.render(s, camera).rgb ** 2)))
    figures = {}
    for name, function in {"picture": picture, "gradient": gradient}.items():
        wall, processor = time.perf_counter(), time.process_time()
        jax.block_until_ready(jax.tree.leaves(function(scene)))
        figures[f"first_{name}"] = round(time.perf_counter() - wall, 2)
        figures[f"first_{name}_processor"] = round(time.process_time() - processor, 2)
        figures[name] = round(min(_timed(function, scene) for _ in range(8)), 4)
    return figures


def _timed(function, scene: sg.Scene) -> float:
    begin = time.perf_counter()
    jax.block_until_ready(jax.tree.leaves(function(scene)))
    return time.perf_counter() - begin


if __name__ == "__main__":
    print(json.dumps(measure(sys.argv[1], int(sys.argv[2]))))
