"""Mitsuba 3's pictures of many spheres: milliseconds and error with 1 and 16 samples a pixel."""

import importlib
import json
import sys
import time
from typing import Any

import numpy as np


SAMPLES = (1, 16)
REFERENCE = 1024


def measure(count: int) -> dict[str, Any]:
    """Best of several pictures; errors against a picture of many samples."""
    # By name: it is not among the project's requirements.
    mitsuba = importlib.import_module("mitsuba")
    mitsuba.set_variant("llvm_ad_rgb")
    begin = time.perf_counter()
    scene = mitsuba.load_dict(_theirs(mitsuba, count))
    figures = {"mitsuba": mitsuba.__version__, "mitsuba_load_seconds": time.perf_counter() - begin}
    draw = lambda samples, seed=0: np.asarray(mitsuba.render(scene, spp=samples, seed=seed))
    truth = np.mean([draw(64, 100 + i) for i in range(REFERENCE // 64)], axis=0)
    for samples in SAMPLES:
        draw(samples)
        seconds = []
        for seed in range(8):
            begin = time.perf_counter()
            picture = draw(samples, seed)
            seconds.append(time.perf_counter() - begin)
        figures[f"mitsuba_{samples}_milliseconds"] = 1e3 * min(seconds)
        figures[f"mitsuba_{samples}_rms_error"] = float(np.sqrt(np.mean((picture - truth) ** 2)))
    return figures


def _theirs(mitsuba: Any, count: int) -> dict[str, Any]:
    from many_scene import EYE, FOV, LAMP, places, POWER, SIZE, TARGET

    to_world = mitsuba.ScalarTransform4f
    centers, radius, colors = places(count)
    diffuse = lambda color: {"type": "diffuse", "reflectance": color}
    rgb = lambda color: {"type": "rgb", "value": list(map(float, color))}
    checker = {
        "type": "checkerboard",
        "color0": rgb([0.8] * 3),
        "color1": rgb([0.2] * 3),
        "to_uv": to_world().scale([1000, 1000, 1]),
    }
    film = {"type": "hdrfilm", "width": SIZE, "height": SIZE, "rfilter": {"type": "box"}}
    spheres = {
        f"s{i}": {
            "type": "sphere",
            "center": list(map(float, centers[i])),
            "radius": float(radius),
            "bsdf": diffuse(rgb(colors[i])),
        }
        for i in range(count)
    }
    look = to_world().look_at(origin=list(EYE), target=list(TARGET), up=[0, 0, 1])
    return {
        "type": "scene",
        "integrator": {"type": "direct", "hide_emitters": True},
        "sensor": {"type": "perspective", "fov": float(np.degrees(FOV)), "to_world": look}
        | {"film": film | {"pixel_format": "rgb"}},
        "floor": {"type": "rectangle", "to_world": to_world().scale([1000, 1000, 1])}
        | {"bsdf": diffuse(checker)},
        "lamp": {"type": "point", "position": list(LAMP), "intensity": rgb([POWER] * 3)},
        **spheres,
    }


if __name__ == "__main__":
    print(json.dumps(measure(int(sys.argv[1]))))
