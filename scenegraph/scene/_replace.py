from collections.abc import Mapping
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import jax.tree_util as jtu

from .._typing import Array, PyTree
from .._words import describe
from ..numerics import AbstractModule, as_float_leaf, Frozen, is_frozen, is_tied
from ._paths import direct_parts, is_unnamed, names, no_match


def replace(tree: PyTree, values: Mapping[str, Any]) -> PyTree:
    """Puts values into a scene, by path.

    Values are converted as by the constructor of the node that gets them: numbers become arrays of
    the type that was there, and names of colours become colours. Frozen leaves stay frozen.

    **Arguments:**

    - `tree`: a scene or any Module.
    - `values`: values by path, such as `{"ball.shape.radius": 0.4, "cam*.focal": 90.0}`. Paths are
      those of `select`, but whole: `*` matches within a name, `**` any number of names, and every
      leaf or node with such a path gets the value.

    **Returns:**

    The tree with the values in the places of what was there.

    **Errors:**

    `ValueError` for a path that matches nothing (with the nearest paths) or a tied leaf, and for a
    value that the node refuses; `TypeError` for a value of another shape or kind.

    Example: another checkerboard.

    ```python
    floor = sg.Surface(sg.Plane(), sg.Checker(0.4, "white", "black"))
    scene = sg.Scene(sg.Group(floor=floor))
    scene = sg.replace(scene, {"floor.shader.scale": 2.0, "floor.shader.color_a": "orange"})
    ```
    """
    used: set[str] = set()
    seen: list[str] = []
    changed = _replaced(tree, "", values, used, seen)
    for pattern in values:
        if pattern not in used:
            raise no_match(pattern, seen)
    return changed


def _replaced(
    node: Any, path: str, values: Mapping[str, Any], used: set[str], seen: list[str]
) -> Any:
    """Returns a node with values in the places of its parts."""
    parts, changed = direct_parts(node), False
    if is_tied(node) or not parts:
        return node
    fresh: list[Any] = []
    for name, old in parts:
        hidden = is_unnamed(node, name)
        place = path if hidden else f"{path}.{name}" if path else name
        patterns = [] if hidden else [x for x in values if names(x, place)]
        if not hidden:
            seen.append(place)
        if patterns:
            used.update(patterns)
            # The last of several that match counts.
            new = _converted(node, name, place, old, values[patterns[-1]])
        else:
            new = _replaced(old, place, values, used, seen)
        changed |= new is not old
        fresh.append(new)
    if not changed:
        return node
    structure = jtu.tree_structure(node, is_leaf=lambda x: x is not node)
    result = jtu.tree_unflatten(structure, fresh)
    _check(node, result, path)
    return result


def _converted(owner: Any, name: str, path: str, old: Any, value: Any) -> Any:
    """Converts a value to what stands at a path."""
    if is_tied(old):
        raise ValueError(
            f"{path!r} is tied to {old.path!r}: put the value there, or `untie` it first."
        )
    if is_frozen(old):
        own = value.value if is_frozen(value) else value
        return Frozen(_converted(owner, name, path, old.value, own))
    fields = owner.__dataclass_fields__ if isinstance(owner, eqx.Module) else {}
    convert = fields[name].metadata.get("converter") if name in fields else None
    try:
        new = value if convert is None else convert(value)
        return _like(old, new) if eqx.is_array(old) else new
    except (TypeError, ValueError) as error:
        raise type(error)(f"{path!r} cannot be {describe(value)}: {error}") from error


def _like(old: Array, value: Any) -> Array:
    """Returns a value as an array of the shape and type of another."""
    value = value.value if is_frozen(value) else value
    if eqx.is_inexact_array(old):
        new = as_float_leaf(value).astype(old.dtype)
    else:
        new = jnp.asarray(value)
        if new.dtype != old.dtype:
            new = new.astype(old.dtype) if jnp.can_cast(new.dtype, old.dtype) else _refuse(old, new)
    if new.shape != old.shape:
        _refuse(old, new)
    return new


def _refuse(old: Array, new: Array) -> Array:
    shown = lambda x: f"{x.dtype}{list(x.shape)}"
    raise TypeError(f"there is a {shown(old)}, and this is a {shown(new)}.")


def _check(before: Any, after: Any, path: str) -> None:
    """Runs the checks of a Module's constructor, if what was there passes them."""
    if not isinstance(after, AbstractModule):
        return
    for base in type(after).__mro__:
        check = base.__dict__.get("__check_init__")
        if check is None:
            continue
        try:
            check(before)
        except (TypeError, ValueError):  # a stack, or what an optimiser left
            continue
        try:
            check(after)
        except (TypeError, ValueError) as error:
            raise type(error)(f"{path!r}: {error}") from error
