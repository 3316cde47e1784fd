"""The walk over a scene's nodes, each copy of `Instances` by itself."""

from collections.abc import Iterator
from typing import Any

import jax
import jax.tree_util as jtu
import numpy as np

from ..scene import Group, Instances, open_scene, path_of, Scene, Transformed
from ..transforms import AbstractTransform


def placed_nodes(scene: Scene) -> Iterator[tuple[Any, np.ndarray]]:
    """Yields the nodes that hold no others, with the matrix world from node."""
    yield from _walk(open_scene(scene).root, np.eye(4))


def _walk(node: Any, matrix: np.ndarray) -> Iterator[tuple[Any, np.ndarray]]:
    if isinstance(node, Transformed):
        yield from _walk(node.child, matrix @ matrix_of(node.transform))
    elif isinstance(node, Instances):
        for copy in copies(node):
            yield from _walk(copy, matrix)
    elif isinstance(node, Group):
        for child in node.children.values():
            yield from _walk(child, matrix)
    else:
        yield node, matrix


def copies(node: Instances) -> list[Transformed]:
    """Returns the copies of a node, each with its own values."""
    return [_copy(node, number) for number in range(node.count)]


def _copy(node: Instances, number: int) -> Transformed:
    def own(keys: tuple, leaf: Any) -> Any:
        path = path_of(node.child, keys)
        return node.values[path][number] if path in node.values else leaf

    child = jtu.tree_map_with_path(own, node.child)
    return Transformed(child, jax.tree.map(lambda x: x[number], node.transforms))


def matrix_of(transform: AbstractTransform) -> np.ndarray:
    """Returns a transform as a matrix `4 4`, float64."""
    matrix = np.eye(4)
    matrix[:3, :3], matrix[:3, 3] = np.asarray(transform.linear()), np.asarray(transform.offset())
    return matrix
