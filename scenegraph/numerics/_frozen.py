from typing import Any

import equinox as eqx
import jax
from jax.lax import stop_gradient

from .._typing import PyTree


class Frozen(eqx.Module):
    """A part of a tree that is not optimised: its gradient is zero wherever it is used.

    It does not appear in paths. `render` and `fit` open it themselves; call `unfreeze` before using
    a frozen node by hand.
    """

    value: Any


def is_frozen(node: Any) -> bool:
    """Returns true if a node is a `Frozen` wrapper."""
    return isinstance(node, Frozen)


def unfreeze(tree: PyTree) -> PyTree:
    """Opens every `Frozen` wrapper, stopping the gradient at what was inside."""

    def stop(leaf: Any) -> Any:
        return stop_gradient(leaf) if eqx.is_array(leaf) else leaf

    def open_wrapper(node: Any) -> Any:
        return jax.tree.map(stop, unfreeze(node.value)) if is_frozen(node) else node

    return jax.tree.map(open_wrapper, tree, is_leaf=is_frozen)


def hold_constant(tree: PyTree) -> PyTree:
    """Stops the gradients of a tree that may hold functions and other static leaves, too."""
    return jax.tree.map(lambda x: stop_gradient(x) if eqx.is_array(x) else x, tree)
