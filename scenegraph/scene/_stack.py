"""Trees of one structure, stacked to one whose arrays have a leading axis."""

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.tree_util as jtu

from .._typing import PyTree
from ..numerics import is_frozen
from ._paths import direct_parts, is_unnamed


def stack_alike(trees: Sequence[PyTree], name: str) -> PyTree:
    """Stacks trees that differ in nothing but the values of their arrays.

    Others are refused with the path of the first difference; `name` is what they are called.
    """
    first, *others = trees
    kind = _kind_of(first)
    for number, other in enumerate(others, 1):
        if _kind_of(other) != kind:
            path, what = _difference("", first, other) or ("", "their static settings differ")
            at = f" at {path!r}" if path else ""
            raise ValueError(
                f"`{name}[{number}]` differs from `{name}[0]`{at}: {what}. All of a batch need one "
                "structure, and arrays of the same shapes."
            )
    stack = lambda *xs: jnp.stack([jnp.asarray(x) for x in xs]) if eqx.is_array(xs[0]) else xs[0]
    return jax.tree.map(stack, *trees)


def _kind_of(tree: PyTree) -> Any:
    leaves, structure = jax.tree.flatten(tree)
    return structure, [(x.shape, x.dtype) if eqx.is_array(x) else x for x in leaves]


def _difference(path: str, one: Any, other: Any) -> tuple[str, str] | None:
    """Returns the path of the first difference of two trees, and what it is."""
    if type(one) is not type(other) and not (eqx.is_array(one) and eqx.is_array(other)):
        return path, f"a {_name(other)} instead of a {_name(one)}"
    if eqx.is_array(one):
        if one.shape != other.shape:
            return path, f"shape {other.shape} instead of {one.shape}"
        return None if one.dtype == other.dtype else (path, f"{other.dtype} instead of {one.dtype}")
    parts, others = list(direct_parts(one)), dict(direct_parts(other))
    if missing := [key for key, _ in parts if key not in others]:
        return _below(path, missing[0]), "it is not there"
    if more := [key for key in others if key not in dict(parts)]:
        return _below(path, more[0]), "there is none in the first"
    for key, part in parts:
        below = path if is_unnamed(one, key) or is_frozen(one) else _below(path, key)
        if found := _difference(below, part, others[key]):
            return found
    if not parts and _kind_of(one) != _kind_of(other):
        return path, f"{other!r} instead of {one!r}"
    if jtu.tree_structure(one) != jtu.tree_structure(other):
        return path, "static settings differ"
    return None


def _below(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _name(value: Any) -> str:
    return "None" if value is None else type(value).__name__
