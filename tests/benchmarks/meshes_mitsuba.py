"""Mitsuba 3's pictures and gradients of a mesh: milliseconds with 1 and 16 samples a pixel."""

import importlib
import json
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np


SAMPLES = (1, 16)


def measure(count: int) -> dict[str, Any]:
    """Best of several pictures, and of several gradients of all vertices."""
    # By name: it is not among the project's requirements.
    mitsuba, drjit = importlib.import_module("mitsuba"), importlib.import_module("drjit")
    mitsuba.set_variant("llvm_ad_rgb")
    scene = mitsuba.load_dict(_theirs(mitsuba, count))
    figures = {"mitsuba": mitsuba.__version__}
    projective = mitsuba.load_dict({"type": "direct_projective", "sppi": 0})
    for samples in SAMPLES:
        draw = partial(_picture, mitsuba, scene, samples)
        figures |= _best(f"mitsuba_{samples}", draw)
        slope = partial(_slopes, mitsuba, drjit, scene, projective, samples)
        figures |= _best(f"mitsuba_{samples}_gradient", slope)
    return figures


def _picture(mitsuba: Any, scene: Any, samples: int, seed: int) -> np.ndarray:
    return np.asarray(mitsuba.render(scene, spp=samples, seed=seed))


def _slopes(
    mitsuba: Any, drjit: Any, scene: Any, integrator: Any, samples: int, seed: int
) -> np.ndarray:
    """Gradients of all vertices, those of outlines and shadow edges among them."""
    parameters = mitsuba.traverse(scene)
    key = "ring.vertex_positions"
    drjit.enable_grad(parameters[key])
    parameters.update()
    how = {"integrator": integrator, "spp": samples, "seed": seed}
    picture = mitsuba.render(scene, parameters, **how)
    drjit.backward(drjit.mean(drjit.square(picture), axis=None))
    return np.asarray(drjit.grad(parameters[key]))


def _best(name: str, call: Callable[[int], Any]) -> dict[str, float]:
    """Milliseconds of wall and of processor time, the least of some runs."""
    call(99)
    walls, processor = [], []
    for seed in range(3):
        begin, used = time.perf_counter(), time.process_time()
        call(seed)
        walls.append(time.perf_counter() - begin)
        processor.append(time.process_time() - used)
    return {
        f"{name}_milliseconds": 1e3 * min(walls),
        f"{name}_processor_milliseconds": 1e3 * min(processor),
    }


def _theirs(mitsuba: Any, count: int) -> dict[str, Any]:
    from meshes_scene import EYE, FLOOR, FOV, GROUND, LAMP, POWER, RING, SIZE, TARGET

    to_world = mitsuba.ScalarTransform4f
    rgb = lambda color: {"type": "rgb", "value": list(map(float, color))}
    diffuse = lambda color: {"type": "diffuse", "reflectance": rgb(color)}
    film = {"type": "hdrfilm", "width": SIZE, "height": SIZE, "rfilter": {"type": "box"}}
    look = to_world().look_at(origin=list(EYE), target=list(TARGET), up=[0, 0, 1])
    ground = to_world().translate([0, 0, GROUND]).scale([1000, 1000, 1])
    return {
        "type": "scene",
        "integrator": {"type": "direct", "hide_emitters": True},
        "sensor": {"type": "perspective", "fov": float(np.degrees(FOV)), "to_world": look}
        | {"film": film | {"pixel_format": "rgb"}},
        "floor": {"type": "rectangle", "to_world": ground, "bsdf": diffuse(FLOOR)},
        "lamp": {"type": "point", "position": list(LAMP), "intensity": rgb([POWER] * 3)},
        "ring": _mesh(mitsuba, count, {"type": "twosided", "bsdf": diffuse(RING)}),
    }


def _mesh(mitsuba: Any, count: int, material: dict[str, Any]) -> Any:
    from meshes_scene import ring

    points, faces = ring(count)
    properties = mitsuba.Properties()
    properties["bsdf"] = mitsuba.load_dict(material)
    mesh = mitsuba.Mesh("ring", len(points), len(faces), props=properties)
    values = mitsuba.traverse(mesh)
    values["vertex_positions"], values["faces"] = points.ravel(), faces.ravel().astype(np.uint32)
    values.update()
    return mesh


if __name__ == "__main__":
    print(json.dumps(measure(int(sys.argv[1]))))
