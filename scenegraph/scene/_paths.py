"""Paths of leaves: child names, then field names, joined by dots."""

import difflib
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.tree_util as jtu

from .._typing import PyTree
from .._words import describe
from ..numerics import Frozen, is_frozen, is_tied


def is_unnamed(node: Any, field: str) -> bool:
    """Returns true for the field of a node that paths omit."""
    return field == ("value" if is_frozen(node) else getattr(type(node), "unnamed", None))


def _name(key: Any) -> str:
    for attribute in ("name", "key", "idx"):
        value = getattr(key, attribute, None)
        if value is not None:
            return str(value)
    return str(key)


def _child(node: Any, key: Any) -> Any:
    if isinstance(key, jtu.GetAttrKey):
        return getattr(node, key.name)
    return node[key.key if isinstance(key, jtu.DictKey) else key.idx]


def _parts_of(tree: PyTree, keys: tuple) -> tuple[tuple[str, ...], bool]:
    """The path that a chain of tree keys spells, and whether a `Frozen` lies on it."""
    parts, frozen, node = [], is_frozen(tree), tree
    for key in keys:
        if not is_unnamed(node, _name(key)):
            parts.append(_name(key))
        node = _child(node, key)
        frozen = frozen or is_frozen(node)
    return tuple(parts), frozen


def path_of(tree: PyTree, keys: tuple) -> str:
    """Returns the path that a chain of tree keys spells."""
    return ".".join(_parts_of(tree, keys)[0])


def named_leaves(tree: PyTree) -> list[tuple[str, Any, bool]]:
    """Lists the array leaves of a scene or of any part of it, with their paths.

    **Arguments:**

    - `tree`: a scene, a node, or any Module.

    **Returns:**

    Triples `(path, leaf, frozen)`.
    """
    leaves = []
    for keys, value in jtu.tree_flatten_with_path(tree)[0]:
        if eqx.is_array(value):
            parts, frozen = _parts_of(tree, keys)
            leaves.append((".".join(parts), value, frozen))
    return leaves


def ties(tree: PyTree) -> list[tuple[str, str]]:
    """Lists the tied leaves of a tree: pairs of a path, and the path of the leaf with the value."""
    nodes = jtu.tree_flatten_with_path(tree, is_leaf=is_tied)[0]
    return [(path_of(tree, keys), x.path) for keys, x in nodes if is_tied(x)]


def find_leaf(tree: PyTree, path: str) -> Any:
    """Returns the one leaf at a path, in a `Frozen` if it is frozen; searches nowhere else.

    Raises `LookupError` if there is none, or if several nodes have that path.
    """
    found = list(_leaves_at(tree, path.split("."), False))
    if len(found) != 1:
        raise LookupError(f"there are {len(found)} leaves at the path {path!r}.")
    return found[0]


def _leaves_at(node: Any, names: list[str], frozen: bool) -> Iterator[Any]:
    # The children of this node alone; a leaf is its own.
    for keys, child in jtu.tree_flatten_with_path(node, is_leaf=lambda x: x is not node)[0]:
        if not keys:
            yield from (Frozen(node) if frozen else node,) if not names else ()
        elif is_unnamed(node, _name(keys[0])):
            yield from _leaves_at(child, names, frozen or is_frozen(node))
        elif names and _name(keys[0]) == names[0]:
            yield from _leaves_at(child, names[1:], frozen)


def find_part(tree: PyTree, path: Any) -> Any:
    """Returns the node, the leaf or whatever else lies at a path, as it is.

    Raises `KeyError` with the names that are there, `TypeError` for what is no path.
    """
    if not isinstance(path, str):
        raise TypeError(
            f"parts of a {type(tree).__name__} are found by a path such as 'ball.shader'; got "
            f"{describe(path)}."
        )
    node = tree
    for depth, name in enumerate(path.split(".")):
        parts = dict(_named_parts(node))
        if name not in parts:
            before = ".".join(path.split(".")[:depth])
            raise KeyError(_no_part(name, before or f"the {type(tree).__name__}", list(parts)))
        node = parts[name]
    return node


def has_part(tree: PyTree, path: Any) -> bool:
    """Returns true if there is something at a path."""
    try:
        find_part(tree, path)
    except KeyError:
        return False
    return True


def _named_parts(node: Any) -> Iterator[tuple[str, Any]]:
    """Yields the parts of a node with their names; of the unnamed one, its parts."""
    for name, child in direct_parts(node):
        if is_unnamed(node, name):
            yield from _named_parts(child)
        else:
            yield name, child


def direct_parts(node: Any) -> list[tuple[str, Any]]:
    """Returns the children of a node in the tree, with their names; none of a leaf."""
    children = jtu.tree_flatten_with_path(node, is_leaf=lambda x: x is not node)[0]
    return [(_name(keys[0]), child) for keys, child in children if keys]


def _no_part(name: str, place: str, names: list[str]) -> str:
    near = difflib.get_close_matches(name, names, n=1)
    guess = f"; did you mean {near[0]!r}?" if near else "."
    return f"there is no {name!r} in {place}{guess} There are: {shortened(names, most=12)}."


def shortened(names: list[str], most: int = 4) -> str:
    """Returns names in a row, the first few of many."""
    rest = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + rest if names else "none"


def label_leaves(tree: PyTree, label: Callable[[str], Any]) -> PyTree:
    """Returns a tree of the same structure, with `label(path)` in the place of every leaf."""

    def at(keys: tuple, _: Any) -> Any:
        return label(path_of(tree, keys))

    return jtu.tree_map_with_path(at, tree)


def matches(pattern: str, path: str) -> bool:
    """Returns true if a pattern matches a path or the beginning of it.

    `*` stands for anything within a name, `**` for any number of names.
    """
    return _matches(pattern.split("."), path.split("."), False)


def names(pattern: str, path: str) -> bool:
    """Returns true if a pattern matches a whole path, and not what is below it."""
    return _matches(pattern.split("."), path.split("."), True)


def _matches(pattern: list[str], path: list[str], whole: bool) -> bool:
    if not pattern:
        return not (whole and path)
    if pattern[0] == "**":
        # Any number of names, none included.
        return any(_matches(pattern[1:], path[i:], whole) for i in range(len(path) + 1))
    return bool(path) and _fits(pattern[0], path[0]) and _matches(pattern[1:], path[1:], whole)


def _fits(pattern: str, name: str) -> bool:
    anything = ".*".join(re.escape(part) for part in pattern.split("*"))
    return re.fullmatch(anything, name) is not None


def check_matches(tree: PyTree, patterns: Sequence[str]) -> None:
    """Refuses patterns that match no leaf, with the nearest paths."""
    paths = [path for path, _, _ in named_leaves(tree)]
    for pattern in patterns:
        if not any(matches(pattern, path) for path in paths):
            raise _only_tied(tree, pattern) or no_match(pattern, paths)


def _only_tied(tree: PyTree, pattern: str) -> ValueError | None:
    """Returns the error for a pattern that matches only tied leaves."""
    for path, leader in ties(tree):
        if matches(pattern, path):
            return ValueError(
                f"{pattern!r} matches only tied leaves: {path!r} is tied to {leader!r}. Name that "
                f"leaf instead, or `untie` it first."
            )
    return None


def no_match(pattern: str, paths: list[str]) -> ValueError:
    """Returns the error for a pattern that matches no path, with the nearest paths."""
    near = difflib.get_close_matches(pattern, paths, n=3, cutoff=0.3) or paths[:3]
    return ValueError(
        f"no leaf has a path that matches {pattern!r}. The nearest are: {', '.join(near)}."
    )


def trainable_leaves(tree: PyTree) -> PyTree:
    """Marks the leaves that are optimised by default: floating-point and not frozen."""

    def wanted(node: Any) -> Any:
        if is_frozen(node):
            return jax.tree.map(lambda _: False, node)
        return eqx.is_inexact_array(node)

    return jax.tree.map(wanted, tree, is_leaf=is_frozen)


def select(tree: PyTree, *patterns: str, where: Callable | None = None) -> PyTree:
    """Selects leaves by path, or by a function.

    **Arguments:**

    - `tree`: a scene or any Module.
    - `patterns`: paths such as `"floor.shader.albedo.scale"` or `"cam*.pose"`: `*` matches within
      one name, `**` any number of names; a path that ends early takes all that is below.
    - `where`: a function from the tree to the selected parts, as in `equinox.tree_at`, instead of
      patterns. Keyword only argument.

    **Returns:**

    A tree of booleans for `equinox.partition`; frozen leaves are never selected.

    **Errors:**

    `ValueError` for a pattern that matches nothing (with the nearest paths) or only frozen leaves.
    """
    free = trainable_leaves(tree)
    if where is None:
        chosen = chosen_leaves(tree, patterns)
        _check_free(tree, patterns)
    else:
        nothing = jax.tree.map(lambda _: False, tree)
        all_of = lambda part: jax.tree.map(lambda _: True, part)
        chosen = eqx.tree_at(where, nothing, replace_fn=all_of)
    return jax.tree.map(lambda a, b: a and b, chosen, free)


def _check_free(tree: PyTree, patterns: tuple[str, ...]) -> None:
    for pattern in patterns:
        if all(frozen for path, _, frozen in named_leaves(tree) if matches(pattern, path)):
            raise ValueError(f"{pattern!r} matches only frozen leaves; `thaw` them first.")


def chosen_leaves(tree: PyTree, patterns: tuple[str, ...]) -> PyTree:
    """Marks the leaves that some pattern matches, frozen or not."""
    check_matches(tree, patterns)

    def wanted(keys: tuple, value: Any) -> bool:
        path = path_of(tree, keys)
        return eqx.is_inexact_array(value) and any(matches(p, path) for p in patterns)

    return jtu.tree_map_with_path(wanted, tree)


def freeze(tree: PyTree, *patterns: str) -> PyTree:
    """Excludes leaves from optimisation.

    **Arguments:**

    - `tree`: a scene or any Module.
    - `patterns`: paths as in `select`; without any, all leaves.

    **Returns:**

    The tree with those leaves wrapped in `Frozen`; paths stay the same.

    **Errors:**

    `ValueError` for a pattern that matches nothing.
    """
    chosen = chosen_leaves(tree, patterns or ("**",))
    free = trainable_leaves(tree)
    return jax.tree.map(lambda x, a, b: Frozen(x) if a and b else x, tree, chosen, free)


def thaw(tree: PyTree, *patterns: str) -> PyTree:
    """Includes frozen leaves in optimisation again, except for the base of a `Pose`.

    **Arguments:**

    - `tree`: a scene or any Module.
    - `patterns`: paths as in `select`; without any, all leaves.

    **Returns:**

    The tree without the wrappers about those leaves.

    **Errors:**

    `ValueError` for a pattern that matches nothing.
    """
    chosen = chosen_leaves(tree, patterns or ("**",))

    def open_wrapper(keys: tuple, node: Any, marks: Any) -> Any:
        if not is_frozen(node) or (keys and _name(keys[-1]) == "base"):
            return node
        return node.value if all(jax.tree.leaves(marks)) else node

    return jtu.tree_map_with_path(open_wrapper, tree, chosen, is_leaf=is_frozen)
