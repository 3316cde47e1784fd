from typing import Any

import equinox as eqx

from .._typing import PyTree
from ..numerics import Frozen, is_frozen, is_tied
from ._copies import Instances
from ._group import Group
from ._paths import named_leaves, shortened, ties
from ._scene import Scene
from ._transformed import Transformed
from ._weights import count_parameters


def describe(tree: PyTree) -> str:
    """Describes a scene as a readable tree: names, classes, shapes, dtypes, parameter counts.

    **Arguments:**

    - `tree`: a scene or any Module.

    **Returns:**

    Several lines of text. `~` marks frozen leaves, `=` tied ones, with the paths of the others.
    """
    leaves = named_leaves(tree)
    numbers = sum(leaf.size for _, leaf, _ in leaves)
    summary = (
        f"{len(leaves)} leaves, {numbers:,} numbers, {count_parameters(tree):,} network weights"
    )
    return "\n".join(
        [f"{type(tree).__name__}  ({summary})", *_lines(tree, "", "", False, _followers(tree))]
    )


def _followers(tree: PyTree) -> dict[str, list[str]]:
    """Returns the paths that are tied to a leaf, by its path."""
    found: dict[str, list[str]] = {}
    for path, first in ties(tree):
        found.setdefault(first, []).append(path)
    return found


def _lines(
    node: Any, path: str, indent: str, frozen: bool, followers: dict[str, list[str]]
) -> list[str]:
    children = [(name, child) for name, child in _children(node) if _is_shown(child)]
    lines = []
    for index, (name, child) in enumerate(children):
        last = index == len(children) - 1
        stem, below = ("└─ ", "   ") if last else ("├─ ", "│  ")
        cold = frozen or is_frozen(child)
        child = child.value if is_frozen(child) else child
        place = f"{path}.{name}" if path else name
        label = _label(child, cold, followers.get(place, []))
        lines.append(f"{indent}{stem}{name}  {label}")
        lines.extend(_lines(child, place, indent + below, cold, followers))
    return lines


def _label(node: Any, frozen: bool, followers: list[str]) -> str:
    if is_tied(node):
        return f"= {node.path}"
    if eqx.is_array(node):
        shape = " ".join(str(n) for n in node.shape)
        others = f" = {shortened(followers)}" if followers else ""
        return f"{node.dtype}[{shape}]" + others + (" ~" if frozen else "")
    kind = type(node).__name__
    weights = count_parameters(node)
    return f"{kind}  ({weights:,} network weights)" if weights else kind


def _is_shown(node: Any) -> bool:
    """Returns true if there is an array in a node, or the place of one that is tied."""
    return bool(named_leaves(node)) or bool(ties(node)) or eqx.is_array(node)


def _children(node: Any) -> list[tuple[str, Any]]:
    if isinstance(node, Frozen):
        return [(name, Frozen(child)) for name, child in _children(node.value)]
    if isinstance(node, Transformed | Instances):
        own = [(name, x) for name, x in vars(node).items() if name != node.unnamed and x != {}]
        return [*own, *_children(node.child)]
    if isinstance(node, Scene):
        rest = [("background", node.background), ("integrator", node.integrator)]
        return [*_children(node.root), *rest]
    if isinstance(node, Group):
        return list(node.children.items())
    if isinstance(node, eqx.Module):
        return [(name, getattr(node, name)) for name in node.__dataclass_fields__]
    if isinstance(node, list | tuple):
        return [(str(index), child) for index, child in enumerate(node)]
    return list(node.items()) if isinstance(node, dict) else []
