"""Errors and warnings about pictures that are probably not intended."""

import sys
import warnings
import weakref
from types import FrameType
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from .._typing import Array, PyTree
from ..flat import SceneStacks
from ..images import was_decoded
from ..numerics import is_frozen, unfreeze
from ..scene import Contents, find_contents, find_violations, named_leaves, Scene, shortened
from ..shaders import AbstractReflectiveMaterial, AbstractShader, GGX
from ..shapes import AbstractBounded, Plane


DECODED = (
    "the scene has no light, so its colours are the sRGB numbers of the picture, but colours by "
    "name and the texels of pictures are linear light, which looks darker there: add a light, or "
    "give numbers, as from `linear_to_srgb(as_color('gray'))` or the `rgb` of an `Image`."
)
_INSIDE = ("scenegraph", "jaxtyping", "beartype", "equinox")


def is_traced(tree: PyTree) -> bool:
    """Returns true if any leaf is traced, so that its value is not known."""
    return any(isinstance(leaf, Tracer) for leaf in jax.tree.leaves(tree))


def check_scene(
    scene: Scene,
    stacks: Scene | SceneStacks | None = None,
    contents: Contents | SceneStacks | None = None,
    *,
    needs_lights: bool = True,
) -> None:
    """Refuses leaves that are not finite, and warns of shaders without light.

    Scenes inside traced functions are not checked: their values are not known. `stacks` are the
    same leaves in fewer arrays, and `contents` what the scene is known to hold.
    """
    every = jax.tree.leaves(scene if stacks is None else stacks)
    if is_traced(every):
        return
    leaves = [leaf for leaf in every if eqx.is_inexact_array(leaf)]
    if not all(map(_is_finite, leaves)):
        raise ValueError(_not_finite(scene))
    say_violations(scene, leaves, stacks)
    contents = contents or find_contents(scene)
    _say_unbounded(contents)
    if (
        not contents.lights
        and DECODED not in _said
        and any(map(was_decoded, jax.tree.leaves(scene)))
    ):
        _said.add(DECODED)
        warnings.warn(DECODED, stacklevel=user_depth())
    if needs_lights:
        say_dark(scene, contents)


def say_dark(scene: Scene, contents: Contents | SceneStacks | None = None) -> None:
    """Warns of shaders without light."""
    contents = contents or find_contents(scene)
    if not contents.lights and (kind := _needs_light(unfreeze(scene.root))):
        warnings.warn(
            f"there is no light in the scene, and a {kind} is black without: add an AmbientLight "
            f"or a PointLight, or use a plain colour.",
            stacklevel=user_depth(),
        )


# The leaves that were looked at last, which are not kept alive by this.
_last_leaves: list[weakref.ref] = []


def say_violations(scene: PyTree, leaves: list[Any], stacks: PyTree = None) -> None:
    """Warns of values that no constructor takes, such as an optimiser may put in.

    `stacks` are the same leaves in fewer arrays, which are looked at first.
    """
    pairs = zip(_last_leaves, leaves, strict=False)
    if len(_last_leaves) == len(leaves) and all(ref() is leaf for ref, leaf in pairs):
        return
    if not isinstance(stacks, SceneStacks) or find_violations(stacks, stacked=True):
        if found := find_violations(scene):
            warnings.warn(_out_of_range(found), stacklevel=user_depth())
            return
    kept = not any(isinstance(x, np.generic) for x in leaves)
    _last_leaves[:] = map(weakref.ref, leaves) if kept else ()


def _out_of_range(found: list[tuple[str, str]]) -> str:
    named = [f"{path} must be {rule}" for path, rule in found]
    one = len(found) == 1
    return (
        f"{len(found)} {'leaf is' if one else 'leaves are'} out of range, and what has "
        f"{'it' if one else 'them'} may vanish, with its gradients: {shortened(named)}."
    )


# Surfaces from which on one without bounds is worth a warning.
_MANY = 32
_said: set[type | str] = set()


def _say_unbounded(contents: Contents | SceneStacks) -> None:
    """Warns, once for each class, of shapes of a user's own that do not say how far they reach."""
    if isinstance(contents, SceneStacks):
        count = sum(stack.number.shape[0] for stack in contents.surfaces)
        shapes = [stack.varying[0].shape for stack in contents.occluders]
    else:
        count = len(contents.surfaces)
        shapes = [_opened(_opened(leaf.node).shape) for leaf in contents.surfaces]
    kinds = set(map(type, shapes)) - _said
    silent = {kind for kind in kinds if not issubclass(kind, AbstractBounded | Plane)}
    if count < _MANY or not silent:
        return
    _said.update(silent)
    names = ", ".join(sorted(kind.__name__ for kind in silent))
    warnings.warn(
        f"{names} has no bounds, so every ray is tested against it; derive it from "
        f"`sg.shapes.AbstractBounded` so that only rays near it are.",
        stacklevel=user_depth(),
    )


def _opened(node: Any) -> Any:
    return node.value if is_frozen(node) else node


def report_overflow(missed: Array | None) -> None:
    """Warns of rays with more surfaces than layers; `None` and traced numbers are not reported."""
    if missed is None or isinstance(missed, Tracer) or not int(missed):
        return
    warnings.warn(
        f"{int(missed)} rays meet more half-covering surfaces than they have layers, and miss the "
        f"farther ones; give the integrator more: `Surfaces(layers=...)`.",
        stacklevel=user_depth(),
    )


def user_depth() -> int:
    """Returns the number of frames up to the user's own line, past the wrappers of shape checks."""
    depth, frame = 1, sys._getframe(1)
    while frame and _is_wrapper(frame):
        frame = frame.f_back
    while frame and _is_inside(frame):
        depth, frame = depth + 1, frame.f_back
    return depth


def _is_inside(frame: FrameType) -> bool:
    return _is_wrapper(frame) or _module_of(frame).split(".")[0] in _INSIDE


def _is_wrapper(frame: FrameType) -> bool:
    """Returns true for the frames of a shape check about a call."""
    # Before version 0.23, beartype's wrappers have the names of no module.
    own = frame.f_code.co_filename.startswith("<@beartype")
    return own or _module_of(frame).startswith(("scenegraph._checks", "jaxtyping", "beartype"))


def _module_of(frame: FrameType) -> str:
    return frame.f_globals.get("__name__", "")


def _is_finite(leaf: Array) -> bool:
    # Of what is cut over several processes, none has all.
    if isinstance(leaf, jax.Array) and not (leaf.is_fully_addressable or leaf.is_fully_replicated):
        return bool(jnp.all(jnp.isfinite(leaf)))
    return bool(np.all(np.isfinite(leaf)))


def _not_finite(scene: Scene) -> str:
    bad = [
        path
        for path, leaf, _ in named_leaves(scene)
        if eqx.is_inexact_array(leaf) and not _is_finite(leaf)
    ]
    return f"the scene's leaf {bad[0]!r} is not finite" + (
        f" (and {len(bad) - 1} more)." if len(bad) > 1 else "."
    )


def _needs_light(tree: Any) -> str | None:
    """Returns the name of a shader that is black without light, if there is one."""

    def is_shader(node: Any) -> bool:
        return isinstance(node, AbstractShader)

    shaders = filter(is_shader, jax.tree.leaves(tree, is_leaf=is_shader))
    dark = (x for x in shaders if x.needs_light and not _shines(x))
    return next((type(shader).__name__ for shader in dark), None)


def _shines(shader: AbstractShader) -> bool:
    """Returns true for a shader that is seen without lights: it emits light, or mirrors."""
    emits = isinstance(shader, GGX) and shader.emission is not None
    return emits or isinstance(shader, AbstractReflectiveMaterial)
