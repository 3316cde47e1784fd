"""Checks of leaves that were put into a scene after its nodes had been made."""

import math
from collections.abc import Iterator
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .._typing import PyTree, typecheck_enabled
from ..cameras import AbstractCamera
from ..numerics import AbstractModule, collect_violations, is_frozen, is_tied, wrong_field
from ._capture import Capture
from ._copies import Instances
from ._paths import direct_parts, is_unnamed, label_leaves
from ._scene import Scene


# Fields whose arrays have a leading axis that their annotations do not know of.
_STACKS = {(Instances, "transforms"), (Instances, "values"), (Capture, "cameras")}
# What is computed in; the values of rules are read from modules with arrays of at most so many.
_DTYPES, _SMALL = (np.dtype("float32"), np.dtype("float64")), 64
# Trees that were found to be right, by their structure and what their leaves are.
_right: set[Any] = set()
_MOST = 256
# Trees that were asked for, and whether they are stacks.
_stacked: dict[Any, bool] = {}


def check_leaves(tree: PyTree, what: str = "the scene", flattened: Any = None) -> None:
    """Refuses leaves of another shape or kind than their nodes have, by their paths.

    Values are not looked at, so that it also holds in traced functions. `flattened` are the leaves
    and the structure, where they are known. Models that are no scenes are their users' own.
    """
    if not typecheck_enabled() or not isinstance(tree, Scene | AbstractCamera):
        return
    leaves, structure = flattened or jax.tree.flatten(tree)
    known = structure, tuple((x.shape, x.dtype) if eqx.is_array(x) else type(x) for x in leaves)
    if known in _right:
        return
    _check_types(tree, leaves, what)
    for path, module in _modules("", tree):
        if wrong := wrong_field(module):
            name, message = wrong
            place = f"{path}.{name}" if path else name
            raise TypeError(f"{place!r} of {what} does not fit its node: {message}")
    if len(_right) >= _MOST:
        _right.clear()
    _right.add(known)


def is_stacked(tree: Scene | AbstractCamera) -> bool:
    """Returns true if arrays do not fit their nodes as they are, as those of a stack of scenes.

    Values are not looked at.
    """
    leaves, structure = jax.tree.flatten(tree)
    known = structure, tuple(jnp.shape(x) if eqx.is_array(x) else type(x) for x in leaves)
    if known not in _stacked:
        if len(_stacked) >= _MOST:
            _stacked.clear()
        _stacked[known] = any(wrong_field(module) for _, module in _modules("", tree))
    return _stacked[known]


def _check_types(tree: PyTree, leaves: list[Any], what: str) -> None:
    """Refuses floating-point numbers of few bits."""
    is_short = lambda x: eqx.is_inexact_array(x) and x.dtype not in _DTYPES
    if not any(map(is_short, leaves)):
        return
    paths = jax.tree.leaves(label_leaves(tree, lambda path: path))
    path, leaf = next((p, x) for p, x in zip(paths, leaves, strict=True) if is_short(x))
    raise TypeError(
        f"{path!r} of {what} is {leaf.dtype}, in which pictures are not computed: convert leaves "
        f"to float32, as with `jax.tree.map(lambda x: x.astype('float32'), ...)`."
    )


def _modules(path: str, node: Any) -> Iterator[tuple[str, AbstractModule]]:
    """Yields the modules of a tree with their paths, but no stacks of them."""
    if is_tied(node) or eqx.is_array(node):
        return
    if isinstance(node, AbstractModule):
        yield path, node
        if not _is_ours(type(node)):  # Its parts may be stacks.
            return
    for name, child in direct_parts(node):
        if not any(isinstance(node, kind) and name == field for kind, field in _STACKS):
            yield from _modules(path if is_unnamed(node, name) else _below(path, name), child)


def _below(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _is_ours(cls: type) -> bool:
    return cls.__module__.split(".")[0] == __name__.split(".")[0]


def find_violations(tree: PyTree, *, stacked: bool = False) -> list[tuple[str, str]]:
    """Lists small leaves whose values break a rule of their nodes: paths, and the rules.

    Of what is `stacked`, all members are looked at together.
    """
    found = []
    for path, module in _modules("", tree):
        fields = [x.value if is_frozen(x) else x for x in vars(module).values()]
        if _is_ours(type(module)) and all(_is_small(x, stacked) for x in fields):
            found += [(_below(path, field), rule) for field, rule in _broken_rules(module)]
    return found


def _is_small(value: Any, stacked: bool) -> bool:
    """Returns true for anything but large arrays, and those that other processes have parts of."""
    if not eqx.is_array(value):
        return True
    shared = isinstance(value, jax.Array) and not value.is_fully_addressable
    here = not shared or value.is_fully_replicated
    return here and math.prod(value.shape[stacked:]) <= _SMALL


def _broken_rules(module: AbstractModule) -> list[tuple[str, str]]:
    """Returns the fields of one module that break a rule, and the rules."""
    with collect_violations() as found:
        for base in type(module).__mro__:
            if base is AbstractModule or "__check_init__" not in base.__dict__:
                continue
            try:
                base.__dict__["__check_init__"](module)
            except (
                AttributeError,
                TypeError,
                ValueError,
            ):  # of no number, or kept apart in a stack
                continue
    return [(x.field, x.rule) for x in found if x.owner is module]
