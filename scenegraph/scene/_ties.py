"""Leaves that have one value: one of them holds it, a `Tied` stands in the places of the others."""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import jax.tree_util as jtu

from .._typing import Array, PyTree
from ..numerics import is_tied, Tied, unfreeze
from ._paths import (
    chosen_leaves,
    find_leaf,
    label_leaves,
    matches,
    path_of,
    shortened,
    ties,
    trainable_leaves,
)


def tie(tree: PyTree, paths: str | Sequence[str]) -> PyTree:
    """Makes one leaf of several: they have one value, and their gradients are added.

    The first in the order of paths stays, and gives the others its value. These are no longer
    leaves: whatever selects, freezes, fits or bounds the first, concerns them, too.

    **Arguments:**

    - `tree`: a scene.
    - `paths`: a path as in `select`, or several; all floating leaves that they match are tied
      together.

    **Returns:**

    The scene with those leaves tied. `describe` says which they are. It is rendered, fitted and
    saved as any other; a node to be used by hand is taken from `open_scene(scene)`.

    **Errors:**

    `ValueError` for a pattern that matches nothing, for fewer than two leaves, and for leaves of
    unequal shapes or dtypes, that are frozen, or that are tied already.

    Example: two cameras have one focal length, all balls and a lamp shade have one radius.

    ```python
    scene = sg.tie(scene, "cam*.focal")
    scene = sg.tie(scene, ["ball*.shape.radius", "shade.shape.radius"])
    ```
    """
    patterns = _as_patterns(paths)
    _check_not_tied(tree, patterns)
    chosen = jax.tree.leaves(chosen_leaves(tree, patterns))
    free = jax.tree.leaves(trainable_leaves(tree))
    names = jax.tree.leaves(label_leaves(tree, str))
    leaves, structure = jax.tree.flatten(tree)
    members = sorted((names[i], i) for i, wanted in enumerate(chosen) if wanted)
    _check_not_frozen([name for name, i in members if not free[i]])
    _check_alike([(name, leaves[i]) for name, i in members], patterns)
    (first, _), *others = members
    for _, i in others:
        leaves[i] = Tied(first)
    return jax.tree.unflatten(structure, leaves)


def untie(tree: PyTree, paths: str | Sequence[str] | None = None) -> PyTree:
    """Makes tied leaves leaves of their own again, with the value that they have.

    **Arguments:**

    - `tree`: a scene.
    - `paths`: paths as in `select`. One of a tied leaf frees that leaf; one of the leaf that gives
      its value to others frees all of these. By default all tied leaves are freed.

    **Returns:**

    The scene with those leaves, which are frozen where the one with their value is.

    **Errors:**

    `ValueError` for a pattern that matches no tied leaf.
    """
    patterns = ("**",) if paths is None else _as_patterns(paths)
    if paths is not None:
        _check_tied(tree, patterns)

    def freed(keys: tuple, node: Any) -> Any:
        if not is_tied(node):
            return node
        if not _any_matches(patterns, (path_of(tree, keys), node.path)):
            return node
        return jax.tree.map(jnp.copy, _value(tree, node.path))

    return jtu.tree_map_with_path(freed, tree, is_leaf=is_tied)


def open_scene(scene: PyTree) -> PyTree:
    """Opens a scene whose nodes are to be used by hand: every leaf in its place, nothing wrapped.

    **Arguments:**

    - `scene`: a scene, with or without tied and frozen leaves.

    **Returns:**

    The scene with the values of tied leaves in their places, and without `Frozen` wrappers: the
    gradient of a tied leaf goes to the leaf with its value, that of a frozen one is zero.

    **Errors:**

    `ValueError` for a leaf that is tied to one that is not there.
    """
    return unfreeze(resolve_ties(scene, scene))


def resolve_ties(part: PyTree, scene: PyTree, known: dict[str, Any] | None = None) -> PyTree:
    """Puts the values of tied leaves in their places, in a part of a scene or in all of it.

    Finding a value takes time; those that are `known`, by path, are not searched for again.
    """
    leaves, structure = jax.tree.flatten(part, is_leaf=is_tied)
    paths = {x.path for x in leaves if is_tied(x)}
    if not paths:
        return part
    values = {} if known is None else known
    values |= {path: _value(scene, path) for path in paths - set(values)}
    return jax.tree.unflatten(structure, [values[x.path] if is_tied(x) else x for x in leaves])


def _value(tree: PyTree, path: str) -> Any:
    """Returns what tied leaves are tied to: an array, in a `Frozen` if it is frozen."""
    try:
        return find_leaf(tree, path)
    except LookupError as error:
        raise ValueError(
            f"leaves of the scene are tied to {path!r}, but {error} Nodes keep the paths at which "
            f"they were tied: `untie` before they are moved, renamed or taken away."
        ) from error


def _as_patterns(paths: str | Sequence[str]) -> tuple[str, ...]:
    return (paths,) if isinstance(paths, str) else tuple(paths)


def _check_not_tied(tree: PyTree, patterns: tuple[str, ...]) -> None:
    for pair in ties(tree):
        if _any_matches(patterns, pair):
            raise ValueError(
                f"{pair[0]!r} is tied to {pair[1]!r} already; `untie` them first, and tie all in "
                f"one call."
            )


def _check_tied(tree: PyTree, patterns: tuple[str, ...]) -> None:
    pairs = ties(tree)
    for pattern in patterns:
        if not any(_any_matches((pattern,), pair) for pair in pairs):
            known = [f"{path!r} to {first!r}" for path, first in pairs]
            raise ValueError(
                f"no tied leaf has a path that matches {pattern!r}. Tied are: {shortened(known)}."
            )


def _check_not_frozen(frozen: list[str]) -> None:
    if frozen:
        raise ValueError(
            f"frozen leaves cannot be tied: {shortened(frozen)}. `thaw` them first, and `freeze` "
            f"what they are tied to, or leave them out."
        )


def _check_alike(members: list[tuple[str, Array]], patterns: tuple[str, ...]) -> None:
    if len(members) < 2:
        matched = ", ".join(path for path, _ in members) or "no floating leaf"
        raise ValueError(f"at least two leaves are tied; {list(patterns)} match {matched}.")
    kinds = [(f"{leaf.dtype}{list(leaf.shape)}", path) for path, leaf in members]
    for kind, path in kinds:
        if kind != kinds[0][0]:
            raise ValueError(
                f"tied leaves have one shape and dtype: {kinds[0][1]!r} is {kinds[0][0]}, {path!r} "
                f"is {kind}. Give paths that match like leaves alone."
            )


def _any_matches(patterns: tuple[str, ...], paths: tuple[str, ...]) -> bool:
    return any(matches(pattern, path) for pattern in patterns for path in paths)
