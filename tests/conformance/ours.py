"""The scenes of the conformance test for this library, and its derivatives of them."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scenes import leaf_value, moved

import scenegraph as sg


def _shape(thing: dict[str, Any]) -> Any:
    make = {
        "sphere": lambda x: sg.Sphere(_array(x["center"]), x["radius"]),
        "box": lambda x: sg.Box(_array(x["lower"]), _array(x["upper"])),
        "cylinder": lambda x: sg.Cylinder(_array(x["center"]), x["radius"], x["height"]),
        "rectangle": lambda x: sg.Rectangle(_array(x["center"]), _array(x["size"])),
        "mesh": lambda x: sg.TriangleMesh(_array(x["vertices"]), np.asarray(x["faces"])),
    }
    return make[thing["kind"]](thing)


def _array(value: Any) -> jax.Array:
    """An array of numbers, one of which may be traced."""
    if isinstance(value, list):
        return jnp.stack([_array(x) for x in value])
    return jnp.asarray(value, float)


def _color(thing: dict[str, Any]) -> Any:
    color = thing["color"]
    if isinstance(color, dict):
        color = sg.Checker(color["scale"], _array(color["first"]), _array(color["second"]))
    else:
        color = sg.Constant(_array(color))
    return sg.Lambert(color) if thing["lit"] else color


def scene(spec: dict[str, Any]) -> sg.Scene:
    """Makes the scene."""
    nodes = {f"thing{i}": sg.Surface(_shape(x), _color(x)) for i, x in enumerate(spec["things"])}
    if spec["lamp"]:
        lamp = {name: _array(value) for name, value in spec["lamp"].items()}
        nodes["lamp"] = sg.PointLight(lamp["position"], lamp["intensity"])
    behind = sg.EnvironmentLight(_array(spec["sky"])) if spec["sky"] else spec["background"]
    return sg.Scene(sg.Group(**nodes), background=behind)


def camera(spec: dict[str, Any]) -> sg.PerspectiveCamera | sg.OrthographicCamera:
    """Makes the camera: of parallel rays if its picture has an extent."""
    own = spec["camera"]
    at = [_array(own[name]) for name in ("eye", "target", "up")]
    size = own["width"], own["height"]
    # In any units: from a thousandth of the way to the target on.
    way = jax.lax.stop_gradient(jnp.linalg.norm(at[1] - at[0]))
    limits = 1e-3 * way, 1e3 * way
    if "extent" in own:
        return sg.OrthographicCamera.look_at(*at, _array(own["extent"]), *size, *limits)
    return sg.PerspectiveCamera.look_at(*at, _array(own["fov"]), *size, *limits)


def derivative(spec: dict[str, Any], samples: int = 1) -> np.ndarray:
    """Returns the derivative of the picture by the leaf; with so many cones a pixel."""

    def shown(value: jax.Array) -> jax.Array:
        other = moved(spec, value)
        return sg.render(scene(other), camera(other), samples_per_pixel=samples).rgb

    value = jnp.asarray(leaf_value(spec), float)
    derive = jax.jit(lambda x: jax.jvp(shown, (x,), (jnp.ones_like(x),))[1])
    return np.asarray(derive(value), float)
