from collections.abc import Sequence
from typing import Any

import jax

from .._typing import PyTree
from .._words import describe
from ..scene import select, trainable_leaves


def choose_trainable(scene: PyTree, trainable: Sequence[str] | PyTree | None) -> PyTree:
    """Returns the tree of booleans that paths stand for, or that all unfrozen floats make up."""
    if trainable is None:
        return trainable_leaves(scene)
    if isinstance(trainable, str):
        trainable = [trainable]
    if isinstance(trainable, list | tuple) and all(isinstance(x, str) for x in trainable):
        return select(scene, *trainable)
    _check_booleans(scene, trainable)
    return trainable


def _check_booleans(scene: PyTree, trainable: Any) -> None:
    """Refuses what is neither paths nor a tree of booleans of the scene's structure."""
    leaves = jax.tree.leaves(trainable)
    if all(isinstance(x, bool) or callable(x) for x in leaves):
        try:
            jax.tree.map(lambda one, part: None, trainable, scene)
        except ValueError:
            pass
        else:
            return
    raise TypeError(
        '`trainable` of `fit` must be paths, such as `["ball.shape.center"]`, or a tree of '
        f"booleans like the scene, such as that of `sg.select`; got {describe(trainable)}."
    )
