"""The scenes and leaves of the conformance test, as plain records; `files/*.json` are these.

A scene has a camera, a pinhole or one of parallel rays, things (a shape and a colour each), perhaps
a lamp, and a background.
`leaf` is the chain of keys to the number by which the picture is differentiated; `step` is how far
finite differences move it, about a pixel (the coarsest take half), both ways or only `ahead`.
"""

import copy
import json
import pathlib
from typing import Any

import numpy as np

from support.hard_triangles import icosphere, slab


FILES = pathlib.Path(__file__).parent / "files"
CAMERA = {
    "eye": [0.3, -4.0, 1.5],
    "target": [0.0, 0.0, 0.2],
    "up": [0.0, 0.0, 1.0],
    "fov": 0.7,
    "width": 24,
    "height": 18,
}
# Straight ahead, with pixels of exactly a tenth in the plane y = 0.
LEVEL = CAMERA | {"eye": [0.0, -4.0, 0.0], "target": [0.0] * 3, "fov": 2 * np.arctan(0.3)}
# Parallel rays, with pixels of exactly a tenth, along y and down along z.
PARALLEL = {key: LEVEL[key] for key in LEVEL if key != "fov"} | {"extent": 2.4}
UPWARDS = CAMERA | {"eye": [0.0] * 3, "target": [0.02, 0.01, 1.0], "up": [0.0, 1.0, 0.0]}
DOWN = PARALLEL | {"eye": [0.0, 0.0, 4.0], "up": [0.0, 1.0, 0.0]}
GREY, RED, BLUE = [0.4, 0.5, 0.6], [0.9, 0.2, 0.1], [0.1, 0.3, 0.8]
CHECKER = {"scale": 0.4, "first": [0.9, 0.8, 0.7], "second": [0.1, 0.1, 0.2]}
LAMP = {"position": [1.0, -1.5, 3.0], "intensity": [20.0, 18.0, 16.0]}


def sphere(center, radius, color=RED, lit=False) -> dict[str, Any]:
    return {"kind": "sphere", "center": center, "radius": radius, "color": color, "lit": lit}


def floor(color=CHECKER, lit=False) -> dict[str, Any]:
    shape = {"kind": "rectangle", "center": [0.0, 0.0, -0.3], "size": [3.0, 3.0]}
    return {**shape, "color": color, "lit": lit}


def card(x, width, color=BLUE, height=0.72) -> dict[str, Any]:
    """An upright slab, thin along the view."""
    lower, upper = [x - width / 2, -0.001, -height / 2], [x + width / 2, 0.0, height / 2]
    return {"kind": "box", "lower": lower, "upper": upper, "color": color, "lit": False}


def mesh(vertices, faces, color=RED) -> dict[str, Any]:
    vertices = np.round(np.asarray(vertices, float), 6).tolist()
    return {
        "kind": "mesh",
        "vertices": vertices,
        "faces": np.asarray(faces).tolist(),
        "color": color,
        "lit": False,
    }


def _mesh_ball() -> dict[str, Any]:
    vertices, faces = icosphere(0)
    return mesh(0.6 * vertices + [0.1, 0.0, 0.3], faces)


def _mesh_box() -> dict[str, Any]:
    vertices, faces = slab([0.5, 0.4, 0.3])
    angle = 0.5
    turn = np.array(
        [[np.cos(angle), -np.sin(angle), 0], [np.sin(angle), np.cos(angle), 0], [0, 0, 1]]
    )
    return mesh(vertices @ turn.T + [0.0, 0.0, 0.2], faces)


def _collapsed() -> dict[str, Any]:
    """A square of four faces about a point on one of its sides: that side's face has no area."""
    square = [[-0.6, 0.0, -0.5], [0.6, 0.0, -0.4], [0.5, 0.0, 0.6], [-0.5, 0.0, 0.5]]
    corners = [*square, [0.0, 0.0, -0.45]]
    return mesh(corners, [[0, 1, 4], [1, 2, 4], [2, 3, 4], [3, 0, 4]])


def scaled(spec: dict[str, Any], scale: float) -> dict[str, Any]:
    """Returns a scene with a lamp in other units of length."""
    long = lambda value: (scale * np.asarray(value)).tolist()
    lengths = ("center", "size", "lower", "upper", "radius", "height")
    spec = copy.deepcopy(spec)
    for thing in spec["things"]:
        thing |= {key: long(thing[key]) for key in lengths if key in thing}
    spec["camera"] |= {key: long(spec["camera"][key]) for key in ("eye", "target")}
    lamp = spec["lamp"]
    power = (scale**2 * np.asarray(lamp["intensity"])).tolist()
    spec["lamp"] = {"position": long(lamp["position"]), "intensity": power}
    return spec | {"step": scale * spec["step"]}


def panorama(height: int, width: int) -> list:
    """The texels of a panorama, all different."""
    return np.random.default_rng(5).uniform(0.1, 1.0, (height, width, 3)).round(3).tolist()


def scene(things, leaf, step, camera=CAMERA, lamp=None, ahead=False, sky=None) -> dict[str, Any]:
    return {
        "camera": camera,
        "things": things,
        "lamp": lamp,
        "sky": sky,
        "background": GREY if lamp is None else [0.0] * 3,
        "leaf": leaf,
        "step": step,
        "ahead": ahead,
    }


BALL = sphere([0.1, 0.0, 0.3], 0.5)
BALL_ABOVE = sphere([0.1, 0.2, 3.0], 0.3)
BOX = {"kind": "box", "lower": [-0.5, -0.4, -0.2], "upper": [0.4, 0.5, 0.6], "color": RED}
BOX = BOX | {"lit": False}
ROD = {"kind": "cylinder", "center": [0.0, 0.0, 0.3], "radius": 0.3, "height": 0.9, "color": RED}
ROD = ROD | {"lit": False}
LIT = [floor([0.8, 0.8, 0.8], lit=True), sphere([0.1, 0.0, 0.6], 0.35, RED, lit=True)]
LIT_BOX = [LIT[0], {**BOX, "lower": [-0.3, -0.3, 0.3], "upper": [0.3, 0.3, 0.7], "lit": True}]
LIT_ROD = [LIT[0], {**ROD, "center": [0.0, 0.0, 0.7], "height": 0.5, "lit": True}]
ROOM = {**BOX, "lower": [-1.2, -0.9, -0.8], "upper": [1.1, 1.3, 0.9], "lit": True}
BULB = {"position": [0.3, 0.4, 0.5], "intensity": [2.0, 1.8, 1.6]}
IN_ROOM = CAMERA | {"eye": [0.1, -0.7, 0.1], "target": [0.0, 0.3, 0.0], "fov": 1.2}
AT = ["things", 0, "center"]
S = 0.04

SCENES = {
    # Silhouettes
    "sphere, sideways": scene([BALL], [*AT, 0], S),
    "sphere, away": scene([BALL], [*AT, 1], 4 * S),
    "sphere, up": scene([BALL], [*AT, 2], S),
    "sphere, radius": scene([BALL], ["things", 0, "radius"], S),
    "sphere over a checkerboard, sideways": scene([BALL, floor()], [*AT, 0], S),
    "one sphere before another, sideways": scene(
        [sphere([0.2, -0.8, 0.3], 0.3, BLUE), BALL], [*AT, 0], S
    ),
    "box, one face": scene([BOX], ["things", 0, "upper", 0], S),
    "box, upper face": scene([BOX], ["things", 0, "upper", 2], S),
    "cylinder, radius": scene([ROD], ["things", 0, "radius"], S),
    "cylinder, height": scene([ROD], ["things", 0, "height"], S),
    "mesh of 20 faces, a vertex": scene([_mesh_ball()], ["things", 0, "vertices", 9, 0], S / 2),
    "mesh of 20 faces, a vertex, up": scene([_mesh_ball()], ["things", 0, "vertices", 9, 2], S / 2),
    "mesh of a turned box, a corner": scene([_mesh_box()], ["things", 0, "vertices", 5, 0], S / 2),
    "mesh over a checkerboard, a vertex": scene(
        [_mesh_box(), floor()], ["things", 0, "vertices", 3, 2], S / 2
    ),
    # Two edges in a pixel, edges on the sides of pixels
    "slab of 0.4 pixels, sideways": scene(
        [card(0.03, 0.04)], ["things", 0, "upper", 0], 0.02, LEVEL
    ),
    "two slabs 0.5 pixels apart, one side": scene(
        [card(-0.275, 0.6), card(0.375, 0.6, RED)], ["things", 0, "upper", 0], 0.02, LEVEL
    ),
    # Only outwards: inwards the side leaves the pixel, which has another weight.
    "slab whose sides are those of pixels": scene(
        [card(0.0, 0.6, height=0.8)], ["things", 0, "upper", 0], 0.04, LEVEL, ahead=True
    ),
    # Parallel rays, along the axes of things
    "parallel, box, one face": scene([BOX], ["things", 0, "upper", 0], S, PARALLEL),
    "parallel, cylinder, radius": scene([ROD], ["things", 0, "radius"], S, DOWN),
    "parallel, cylinder, height": scene([ROD], ["things", 0, "height"], S, PARALLEL),
    "parallel, mesh of a box, a corner": scene(
        [mesh(*slab([0.53, 0.4, 0.36]))],
        ["things", 0, "vertices", 5, 0],
        S / 2,
        PARALLEL,
        ahead=True,
    ),
    "parallel, camera sideways": scene([BALL, floor()], ["camera", "eye", 0], S, DOWN),
    # Panoramas of few texels, about their poles, too
    "sky of two by three texels, a texel": scene([BALL], ["sky", 0, 1, 0], 0.1, sky=panorama(2, 3)),
    "sky about its zenith, a texel": scene(
        [BALL_ABOVE], ["sky", 0, 5, 1], 0.1, UPWARDS, sky=panorama(8, 16)
    ),
    "sky about its zenith, camera": scene(
        [BALL_ABOVE], ["camera", "target", 0], 0.02, UPWARDS, sky=panorama(8, 16)
    ),
    # From inside, and a face without area
    "room from inside, a wall": scene([ROOM], ["things", 0, "upper", 1], S, IN_ROOM, BULB),
    "mesh with a collapsed face, a vertex": scene(
        [_collapsed()], ["things", 0, "vertices", 2, 0], S / 2
    ),
    # Cameras
    "camera, sideways": scene([BALL, floor()], ["camera", "eye", 0], S),
    "camera, nearer": scene([BALL, floor()], ["camera", "eye", 1], 4 * S),
    "camera, up": scene([BALL, floor()], ["camera", "eye", 2], S),
    "camera, turned": scene([BALL, floor()], ["camera", "target", 0], S),
    "camera, rolled": scene([BALL, floor()], ["camera", "up", 0], S),
    "camera, field of view": scene([BALL, floor()], ["camera", "fov"], 0.02),
    # Textures
    "checkerboard, size of squares": scene([floor()], ["things", 0, "color", "scale"], 0.01),
    "checkerboard, a colour": scene([floor()], ["things", 0, "color", "first", 0], 0.1),
    "checkerboard, its side": scene([floor()], ["things", 0, "size", 0], 2 * S),
    # Lights and shadows
    "lamp, sideways": scene(LIT, ["lamp", "position", 0], 2 * S, lamp=LAMP),
    "lamp, up": scene(LIT, ["lamp", "position", 2], 4 * S, lamp=LAMP),
    "lamp, intensity": scene(LIT, ["lamp", "intensity", 0], 1.0, lamp=LAMP),
    "shadow of a sphere, sphere up": scene(LIT, ["things", 1, "center", 2], S, lamp=LAMP),
    "shadow of a sphere, radius": scene(LIT, ["things", 1, "radius"], S, lamp=LAMP),
    # Only outwards: the eye is in the plane of the face, which it sees once that moves inwards.
    "shadow of a box, a face": scene(LIT_BOX, ["things", 1, "upper", 0], S, lamp=LAMP, ahead=True),
    "shadow of a box, lamp": scene(LIT_BOX, ["lamp", "position", 0], 2 * S, lamp=LAMP),
    "shadow of a cylinder, lamp": scene(LIT_ROD, ["lamp", "position", 1], 2 * S, lamp=LAMP),
    "millimetres, shadow of a box, lamp": scaled(
        scene(LIT_BOX, ["lamp", "position", 0], 2 * S, lamp=LAMP), 1e-3
    ),
}


def file_name(name: str) -> str:
    return name.replace(",", "").replace(" ", "-")


def moved(spec: dict[str, Any], value: Any) -> dict[str, Any]:
    """Returns a scene with another value of its leaf."""
    spec = copy.deepcopy(spec)
    *keys, last = spec["leaf"]
    at = spec
    for key in keys:
        at = at[key]
    at[last] = value
    return spec


def leaf_value(spec: dict[str, Any]) -> float:
    at = spec
    for key in spec["leaf"]:
        at = at[key]
    return at


def weights(height: int, width: int) -> np.ndarray:
    """What the pixels of a derivative are summed with: smooth, and of no symmetry."""
    y, x, channel = np.ogrid[:height, :width, :3]
    return 1 + 0.5 * np.sin(0.37 * x + 0.23 * y + channel)


def write_scenes() -> None:
    """Writes all scenes as JSON."""
    FILES.mkdir(exist_ok=True)
    for name, spec in SCENES.items():
        text = json.dumps({"name": name, **spec}, indent=1)
        (FILES / f"{file_name(name)}.json").write_text(text + "\n")
