"""The scene of the benchmark of surfaces, for this library and for Mitsuba 3.

Either is imported where it is needed, so that the process of one does not hold the other.
"""

import math
from typing import Any


SIZE, FOV = 512, 0.7
EYE, TARGET, UP = [0.0, -4.0, 2.0], [0.0, 0.0, 0.5], [0.0, 0.0, 1.0]
RED, BLUE, GREEN = [0.9, 0.1, 0.1], [0.1, 0.1, 0.9], [0.2, 0.8, 0.3]
CELL, FAR = 2.0, 100.0
# Half the side of Mitsuba's floor: whole periods of the pattern, and beyond all that is seen.
HALF = 400.0


def ours() -> tuple[Any, Any]:
    """A checkered floor and a ball under a point light, and the camera."""
    import scenegraph as sg

    floor = sg.Surface(sg.shapes.Plane(), sg.shaders.Lambert(sg.shaders.Checker(CELL, RED, BLUE)))
    ball = sg.Surface(sg.shapes.Sphere([0, 0, 0.5], 0.5), sg.shaders.Lambert(GREEN))
    lamp = sg.lights.PointLight([2, -2, 4], [20, 20, 20])
    tree = sg.Group(floor=floor, ball=ball, lamp=lamp)
    camera = sg.PerspectiveCamera.look_at(EYE, TARGET, UP, FOV, SIZE, SIZE, far=FAR)
    return sg.Scene(tree, background=[1.0, 1.0, 1.0]), camera


def theirs(mi: Any) -> Any:
    """The same scene. A background would light it, so the picture has an alpha channel instead."""
    transform = mi.ScalarTransform4f
    film = {
        "type": "hdrfilm",
        "width": SIZE,
        "height": SIZE,
        "pixel_format": "rgba",
        "component_format": "float32",
        "rfilter": {"type": "box"},
    }
    periods = HALF / CELL
    board = {
        "type": "checkerboard",
        "color0": _rgb(RED),
        "color1": _rgb(BLUE),
        "to_uv": transform().scale([periods, periods, 1]),
    }
    return mi.load_dict(
        {
            "type": "scene",
            # One sample of the lamp and none of the surface, which could not meet it: the faster.
            "integrator": {"type": "direct", "emitter_samples": 1, "bsdf_samples": 0},
            "sensor": {
                "type": "perspective",
                "fov": math.degrees(FOV),
                "fov_axis": "x",
                "near_clip": 0.01,
                "far_clip": FAR,
                "to_world": transform().look_at(origin=EYE, target=TARGET, up=UP),
                "film": film,
                "sampler": {"type": "independent"},
            },
            "floor": {
                "type": "rectangle",
                "to_world": transform().scale([HALF, HALF, 1]),
                "bsdf": {"type": "diffuse", "reflectance": board},
            },
            "ball": {
                "type": "sphere",
                "center": [0, 0, 0.5],
                "radius": 0.5,
                "bsdf": {"type": "diffuse", "reflectance": _rgb(GREEN)},
            },
            "lamp": {"type": "point", "position": [2, -2, 4], "intensity": _rgb([20, 20, 20])},
        }
    )


def _rgb(values: list[float]) -> dict[str, Any]:
    return {"type": "rgb", "value": values}
