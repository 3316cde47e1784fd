"""Mitsuba 3's pictures and gradients of a mesh: milliseconds with 1 and 16 samples a pixel."""

import importlib
import json
import sys
import time
from collections.abc import Callable
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
    projective = mitsuba.load_dict({"type": "direct_projective"})
    parameters = mitsuba.traverse(scene)
    key = "ring.vertex_positions"
    for samples in SAMPLES:
        draw = lambda seed: np.asarray(mitsuba.render(scene, spp=samples, seed=seed))  # noqa: B023
        figures[f"mitsuba_{samples}_milliseconds"] = _best(draw)

        def slope(seed: int) -> np.ndarray:
            drjit.enable_grad(parameters[key])
            picture = mitsuba.render(scene, parameters, integrator=projective, spp=samples, seed=seed)  # noqa: B023, E501
            drjit.backward(drjit.mean(drjit.square(picture), axis=None))
            return np.asarray(drjit.grad(parameters[key]))

        figures[f"mitsuba_{samples}_gradient_milliseconds"] = _best(slope)
    return figures


def _best(call: Callable[[int], Any]) -> float:
    call(99)
    seconds = []
    for seed in range(5):
        begin = time.perf_counter()
        call(seed)
        seconds.append(time.perf_counter() - begin)
    return 1e3 * min(seconds)


def _theirs(mitsuba: Any, count: int) -> dict[str, Any]:
    from meshes_scene import EYE, FLOOR, FOV, GROUND, LAMP, POWER, ring, RING, SIZE, TARGET

    points, faces = ring(count)
    mesh = mitsuba.Mesh("ring", len(points), len(faces), has_vertex_normals=False)
    values = mitsuba.traverse(mesh)
    values["vertex_positions"], values["faces"] = points.ravel(), faces.ravel().astype(np.uint32)
    values.update()
    to_world = mitsuba.ScalarTransform4f
    rgb = lambda color: {"type": "rgb", "value": list(map(float, color))}
    diffuse = lambda color: {"type": "diffuse", "reflectance": rgb(color)}
    film = {"type": "hdrfilm", "width": SIZE, "height": SIZE, "rfilter": {"type": "box"}}
    look = to_world().look_at(origin=list(EYE), target=list(TARGET), up=[0, 0, 1])
    ground = to_world().translate([0, 0, GROUND]).scale([1000, 1000, 1])
    properties = mitsuba.Properties()
    properties["bsdf"] = mitsuba.load_dict({"type": "twosided", "bsdf": diffuse(RING)})
    whole = mitsuba.Mesh("ring", len(points), len(faces), props=properties)
    own = mitsuba.traverse(whole)
    own["vertex_positions"], own["faces"] = values["vertex_positions"], values["faces"]
    own.update()
    return {
        "type": "scene",
        "integrator": {"type": "direct", "hide_emitters": True},
        "sensor": {"type": "perspective", "fov": float(np.degrees(FOV)), "to_world": look}
        | {"film": film | {"pixel_format": "rgb"}},
        "floor": {"type": "rectangle", "to_world": ground, "bsdf": diffuse(FLOOR)},
        "lamp": {"type": "point", "position": list(LAMP), "intensity": rgb([POWER] * 3)},
        "ring": whole,
    }


if __name__ == "__main__":
    print(json.dumps(measure(int(sys.argv[1]))))
