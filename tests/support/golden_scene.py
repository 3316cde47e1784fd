"""The scenes and rays of the golden forward and training data, through public classes."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

import scenegraph as sg
from scenegraph.encodings import Positional
from scenegraph.fields import Dense, MipNerfMLP
from scenegraph.rays import CylinderBeam
from scenegraph.samplers import Disparity
from support.helpers import golden_rays as golden_rays


WHITE, BLACK = (1.0, 1.0, 1.0), (0.0, 0.0, 0.0)

# What every tag changes: of the scene, of the field, of the integrator.
_TAGS = {
    "default_white": ({}, {}, {}),
    "default_black": ({"background": BLACK}, {}, {}),
    "lindisp": ({}, {}, {"spacing": Disparity()}),
    "three_levels": ({"levels": 3}, {}, {}),
    "llff_like": (
        {"background": BLACK},
        {"density_activation": jax.nn.relu, "density_bias": 0.0, "rgb_padding": 0.0},
        {"beam": CylinderBeam()},
    ),
    "no_integration": ({}, {"encoding": Positional(0, 16, identity=False, wrap=True)}, {}),
}
TAGS = tuple(_TAGS)


def golden_scene(data: dict[str, np.ndarray], tag: str = "default_white", **integrator) -> sg.Scene:
    """The scene of one golden configuration; further keywords go to `Hierarchical`."""
    options, field, own = _TAGS[tag]
    width, view_width = data["layer_shapes"][0, 1], data["layer_shapes"][10, 1]
    samples = 32 if width == 64 else 128
    thing = MipNerfMLP(int(width), view_width=int(view_width), **field, key=jax.random.key(0))
    scene = sg.Scene(
        sg.Group(thing=sg.Volume(thing, bounds=None)),
        background=options.get("background", WHITE),
        integrator=sg.Hierarchical(
            (samples,) * options.get("levels", 2), empty_depth_near=True, **{**own, **integrator}
        ),
    )
    return with_golden_weights(scene, golden_weights(data))


def golden_layers(scene: sg.Scene) -> dict[str, Dense]:
    """The layers of a golden scene (or of its gradient) under their golden names."""
    network = scene.root.children["thing"].field.network
    named = {f"trunk{index}": layer for index, layer in enumerate(network.trunk)}
    named |= {"density": network.density, "bottleneck": network.bottleneck}
    named |= {"condition0": network.head[0], "rgb": network.rgb}
    return {f"w{index:02}.{name}": layer for index, (name, layer) in enumerate(named.items())}


def golden_leaves(scene: sg.Scene) -> dict[str, jax.Array]:
    """Weights (or gradients) as the golden files name and lay them out: kernels are (in, out)."""
    layers = golden_layers(scene).items()
    kernels = {f"{name}.kernel": layer.weight.T for name, layer in layers}
    return kernels | {f"{name}.bias": layer.bias for name, layer in layers}


def with_golden_weights(scene: sg.Scene, weights: dict[str, np.ndarray]) -> sg.Scene:
    """The scene with the leaves of `golden_leaves` replaced."""

    def leaves(scene):
        return [x for layer in golden_layers(scene).values() for x in (layer.weight, layer.bias)]

    names = golden_layers(scene)
    new = [jnp.asarray(x) for n in names for x in (weights[f"{n}.kernel"].T, weights[f"{n}.bias"])]
    assert [x.shape for x in leaves(scene)] == [x.shape for x in new]
    return eqx.tree_at(leaves, scene, new)


def golden_weights(data: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The weights that a golden file stores, or else the ones its recipe draws."""
    stored = {
        n: x for n, x in data.items() if n.startswith("w") and n.endswith((".kernel", ".bias"))
    }
    return stored or recipe_weights(data)


def recipe_weights(data: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The recipe of both golden files, from numpy's legacy generator."""
    rng = np.random.RandomState(int(data["weights_seed"]))
    weights = {}
    for index, (name, shape) in enumerate(
        zip(data["layer_names"], data["layer_shapes"], strict=True)
    ):
        limit = np.sqrt(6 / shape.sum())
        prefix = f"w{index:02}.{name}"
        weights[f"{prefix}.kernel"] = rng.uniform(-limit, limit, shape).astype(np.float32)
        weights[f"{prefix}.bias"] = (0.1 * rng.standard_normal(shape[1])).astype(np.float32)
    weights["w08.density.kernel"] *= np.float32(16)
    weights["w11.rgb.kernel"] *= np.float32(2)
    weights["w08.density.bias"] += data["density_bias_added"]
    return weights
