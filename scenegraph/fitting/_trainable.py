from collections.abc import Sequence

from .._typing import PyTree
from ..scene import select, trainable_leaves


def choose_trainable(scene: PyTree, trainable: Sequence[str] | PyTree | None) -> PyTree:
    """Returns the tree of booleans that paths stand for, or that all unfrozen floats make up."""
    if trainable is None:
        return trainable_leaves(scene)
    if isinstance(trainable, str):
        trainable = [trainable]
    named = isinstance(trainable, list | tuple) and all(isinstance(x, str) for x in trainable)
    return select(scene, *trainable) if named else trainable
