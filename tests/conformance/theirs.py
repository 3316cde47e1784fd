"""The scenes of the conformance test for Mitsuba 3, and its derivatives of them.

`direct_projective` is its integrator with an edge estimator of its own: samples of outlines
(`sppp`) and of shadow edges (`sppi`) beside those of what is continuous (`sppc`).
"""

import importlib
from typing import Any

import numpy as np
from scenes import leaf_value


# Samples of a pixel, of each of the three kinds, and so many pictures with seeds of their own.
SAMPLES, PICTURES = 256, 4
_CORNERS = np.array([[x, y, z] for x in (0, 1) for y in (0, 1) for z in (0, 1)], float)
# Counterclockwise seen from outside, of corners that are counted in binary as x y z.
_BOX = [[0, 1, 3], [0, 3, 2], [4, 6, 7], [4, 7, 5], [0, 4, 5], [0, 5, 1]]
_BOX += [[2, 3, 7], [2, 7, 6], [0, 2, 6], [0, 6, 4], [1, 5, 7], [1, 7, 3]]


def derivatives(spec: dict[str, Any]) -> tuple[np.ndarray, np.ndarray]:
    """Returns derivatives of several pictures by the leaf, 0 without any, and the mean picture."""
    mitsuba, drjit = importlib.import_module("mitsuba"), importlib.import_module("drjit")
    mitsuba.set_variant("llvm_ad_rgb")
    mitsuba.set_log_level(mitsuba.LogLevel.Error)
    some = [_derivative(mitsuba, drjit, spec, seed) for seed in range(PICTURES)]
    return np.stack([x for x, _ in some]), np.mean([shown for _, shown in some], axis=0)


def _derivative(
    mitsuba: Any, drjit: Any, spec: dict[str, Any], seed: int
) -> tuple[np.ndarray, np.ndarray]:
    scene = mitsuba.load_dict(_scene(mitsuba, spec))
    parameters, leaf = mitsuba.traverse(scene), mitsuba.Float(leaf_value(spec))
    drjit.enable_grad(leaf)
    for name, value in _moved(mitsuba, drjit, spec, leaf).items():
        parameters[name] = value
    parameters.update()
    how = {"type": "direct_projective", "sppp": SAMPLES, "sppi": SAMPLES}
    how = {"integrator": mitsuba.load_dict(how), "spp": SAMPLES, "seed": seed}
    shown = mitsuba.render(scene, parameters, **how)
    try:
        drjit.forward(leaf)
    except RuntimeError as error:
        # So it says where it has no derivative.
        if "does not depend on the input" not in str(error):
            raise
        return np.zeros(shown.shape), np.array(shown)
    return np.array(drjit.grad(shown)), np.array(shown)


def _scene(mitsuba: Any, spec: dict[str, Any]) -> dict[str, Any]:
    camera = spec["camera"]
    film = {"type": "hdrfilm", "width": camera["width"], "height": camera["height"]}
    film |= {"rfilter": {"type": "box"}, "pixel_format": "rgb"}
    at = {"origin": camera["eye"], "target": camera["target"], "up": camera["up"]}
    sensor = {"type": "perspective", "fov_axis": "x", "fov": float(np.degrees(camera["fov"]))}
    sensor |= {"to_world": mitsuba.ScalarTransform4f().look_at(**at), "film": film}
    nodes = {"type": "scene", "sensor": sensor}
    for number, thing in enumerate(spec["things"]):
        nodes |= _thing(mitsuba, thing, f"thing{number}")
    if spec["lamp"]:
        lamp = {"type": "rgb", "value": spec["lamp"]["intensity"]}
        return nodes | {
            "lamp": {"type": "point", "position": spec["lamp"]["position"], "intensity": lamp}
        }
    sky = {"type": "rgb", "value": spec["background"]}
    return nodes | {"sky": {"type": "constant", "radiance": sky}}


def _thing(mitsuba: Any, thing: dict[str, Any], name: str) -> dict[str, Any]:
    kind, material = thing["kind"], _material(mitsuba, thing)
    if kind in ("box", "mesh"):
        return {name: _mesh(mitsuba, thing, name, material)}
    transforms = _transforms(mitsuba.ScalarTransform4f, thing)
    kinds = ("cylinder", "disk", "disk") if kind == "cylinder" else (kind,)
    return {
        f"{name}_{part}": {"type": own, "to_world": transform, **material}
        for part, (own, transform) in enumerate(zip(kinds, transforms, strict=True))
    }


def _material(mitsuba: Any, thing: dict[str, Any]) -> dict[str, Any]:
    color = _texture(mitsuba, thing)
    if thing["lit"]:
        return {"bsdf": {"type": "twosided", "one": {"type": "diffuse", "reflectance": color}}}
    black = {"type": "diffuse", "reflectance": {"type": "rgb", "value": 0.0}}
    return {"bsdf": black, "emitter": {"type": "area", "radiance": color}}


def _texture(mitsuba: Any, thing: dict[str, Any]) -> dict[str, Any]:
    color = thing["color"]
    if not isinstance(color, dict):
        return {"type": "rgb", "value": color}
    first, second = ({"type": "rgb", "value": color[name]} for name in ("first", "second"))
    pattern = {"type": "checkerboard", "color0": first, "color1": second}
    make = mitsuba.ScalarTransform3f
    return pattern | {"to_uv": _pattern(make, thing, color["scale"], thing["size"][0])}


def _pattern(make: Any, thing: dict[str, Any], scale: Any, width: Any) -> Any:
    """The transform from a rectangle's unit square to pairs of squares of the pattern."""
    # u' = x / (2 scale), x = center + width (u - 1/2).
    size, center = [width, thing["size"][1]], thing["center"][:2]
    shift = [(c - w / 2) / (2 * scale) for c, w in zip(center, size, strict=True)]
    return make().translate(shift) @ make().scale([w / (2 * scale) for w in size])


def _transforms(make: Any, thing: dict[str, Any]) -> list[Any]:
    """World from the shape of Mitsuba: of a cylinder, those of its side and its two ends."""
    at = make().translate(thing["center"])
    if thing["kind"] == "sphere":
        return [at @ make().scale(thing["radius"])]
    if thing["kind"] == "rectangle":
        return [at @ make().scale([thing["size"][0] / 2, thing["size"][1] / 2, 1.0])]
    radius, height = thing["radius"], thing["height"]
    wide = [radius, radius, 1.0]
    side = at @ make().translate([0.0, 0.0, -height / 2]) @ make().scale([radius, radius, height])
    upper = at @ make().translate([0.0, 0.0, height / 2]) @ make().scale(wide)
    lower = at @ make().translate([0.0, 0.0, -height / 2]) @ make().scale([radius, -radius, -1.0])
    return [side, upper, lower]


def _mesh(mitsuba: Any, thing: dict[str, Any], name: str, material: dict[str, Any]) -> Any:
    vertices, faces = np.asarray(_vertices(thing), np.float32), np.asarray(_faces(thing), np.uint32)
    properties = mitsuba.Properties()
    for key, value in material.items():
        properties[key] = mitsuba.load_dict(value)
    mesh = mitsuba.Mesh(name, len(vertices), len(faces), properties)
    parameters = mitsuba.traverse(mesh)
    parameters["vertex_positions"] = vertices.ravel()
    parameters["faces"] = faces.ravel()
    parameters.update()
    return mesh


def _vertices(thing: dict[str, Any]) -> Any:
    if thing["kind"] == "mesh":
        return thing["vertices"]
    lower, upper = thing["lower"], thing["upper"]
    return [[(upper if c else lower)[i] for i, c in enumerate(x)] for x in _CORNERS]


def _faces(thing: dict[str, Any]) -> Any:
    return thing["faces"] if thing["kind"] == "mesh" else _BOX


def _moved(mitsuba: Any, drjit: Any, spec: dict[str, Any], leaf: Any) -> dict[str, Any]:
    """Mitsuba's parameters that depend on the leaf, as functions of it."""
    where, *keys = spec["leaf"]
    if where == "things":
        return _moved_thing(mitsuba, drjit, spec, keys, leaf)
    own = _with(spec[where], keys, leaf)
    if where == "lamp":
        name = "lamp.position" if keys[0] == "position" else "lamp.intensity.value"
        kind = mitsuba.Point3f if keys[0] == "position" else mitsuba.Color3f
        return {name: kind(*own[keys[0]])}
    if keys[0] == "fov":
        return {"sensor.x_fov": own["fov"] * 180 / np.pi}
    at = {"origin": mitsuba.Point3f(*own["eye"]), "target": mitsuba.Point3f(*own["target"])}
    return {"sensor.to_world": mitsuba.Transform4f().look_at(**at, up=mitsuba.Vector3f(*own["up"]))}


def _moved_thing(mitsuba: Any, drjit: Any, spec: Any, keys: list[Any], leaf: Any) -> dict[str, Any]:
    number, *keys = keys
    thing, name = _with(spec["things"][number], keys, leaf), f"thing{number}"
    if keys[0] == "color":
        emitter = "bsdf.reflectance" if thing["lit"] else "emitter.radiance"
        if keys[1] == "scale":
            # The size of squares is no traced number there.
            return {}
        place = "color0" if keys[1] == "first" else "color1"
        return {f"{name}_0.{emitter}.{place}.value": mitsuba.Color3f(*thing["color"][keys[1]])}
    if thing["kind"] in ("box", "mesh"):
        vertices = [x for corner in _vertices(thing) for x in corner]
        flat = [x if isinstance(x, mitsuba.Float) else mitsuba.Float(x) for x in vertices]
        return {f"{name}.vertex_positions": drjit.concat(flat)}
    transforms = _transforms(mitsuba.Transform4f, thing)
    return {f"{name}_{part}.to_world": x for part, x in enumerate(transforms)}


def _with(record: Any, keys: list[Any], value: Any) -> Any:
    """Returns a record with another value in the place to which the keys lead."""
    if not keys:
        return value
    key, *others = keys
    copy = list(record) if isinstance(record, list) else dict(record)
    copy[key] = _with(record[key], others, value)
    return copy
