"""Trees that compiled functions take and return as plain lists of arrays.

Flattening the tree of a scene takes longer than a small step does. It is done once, not at every
step: from then on, all that is not an array is hashed and compared by its identity.
"""

import functools
import weakref
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .._typing import PyTree


class _Rest:
    """All of a tree but its arrays. Equal ones are the same object."""

    __slots__ = ("structure", "leaves", "__weakref__")

    def __init__(self, structure: Any, leaves: tuple):
        self.structure, self.leaves = structure, leaves


_known: weakref.WeakValueDictionary[Any, _Rest] = weakref.WeakValueDictionary()


class Flat:
    """A tree as its arrays, with keys as their data, and the rest; for `jax.jit`, a list."""

    __slots__ = ("arrays", "rest", "__dict__")

    def __init__(self, arrays: tuple, rest: _Rest):
        self.arrays, self.rest = arrays, rest

    @functools.cached_property
    def tree(self) -> PyTree:
        """The tree, which is made when it is first needed."""
        arrays = iter(self.arrays)
        leaves = [_unpack(mark, arrays) for mark in self.rest.leaves]
        return jax.tree.unflatten(self.rest.structure, leaves)


jax.tree_util.register_pytree_node(
    Flat, lambda flat: (flat.arrays, flat.rest), lambda rest, arrays: Flat(tuple(arrays), rest)
)


class _IsArray:
    """The place of an array, or of a key of some kind, in a tree."""

    def __init__(self, kind: str | None):
        self.kind = kind


_kinds = functools.cache(_IsArray)


def flatten(tree: PyTree) -> Flat:
    """Separates a tree, whose other leaves can be hashed, into its arrays and the rest."""
    leaves, structure = jax.tree.flatten(tree)
    marks, arrays = [], []
    for leaf in leaves:
        if isinstance(leaf, jax.Array | np.ndarray):
            is_key = jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)
            arrays.append(jax.random.key_data(leaf) if is_key else leaf)
            marks.append(_kinds(str(jax.random.key_impl(leaf)) if is_key else None))
        else:
            marks.append((type(leaf), leaf))  # 1, 1.0 and True are equal
    value = structure, tuple(marks)
    return Flat(tuple(arrays), _known.setdefault(value, _Rest(*value)))


def _unpack(mark: Any, arrays: Any) -> Any:
    if not isinstance(mark, _IsArray):
        return mark[1]
    array = next(arrays)
    return array if mark.kind is None else jax.random.wrap_key_data(array, impl=mark.kind)
