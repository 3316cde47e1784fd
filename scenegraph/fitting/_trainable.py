from collections.abc import Sequence

from .._typing import PyTree
from ..scene import select, trainable_leaves


def choose_trainable(scene: PyTree, trainable: Sequence[str] | PyTree | None) -> PyTree:
    """Which leaves are optimised.

    **Arguments:**

    - `scene`: or any Module.
    - `trainable`: paths (see `select`), or a tree of booleans; `None` for every floating leaf that
      is not frozen.

    **Returns:**

    A tree of booleans.

    **Errors:**

    `ValueError` for a path that matches nothing.
    """
    if trainable is None:
        return trainable_leaves(scene)
    if isinstance(trainable, str):
        trainable = [trainable]
    named = isinstance(trainable, list | tuple) and all(isinstance(x, str) for x in trainable)
    return select(scene, *trainable) if named else trainable
