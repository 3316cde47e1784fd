from typing import Any

import equinox as eqx
import jax
from jax.lax import stop_gradient

from .._typing import PyTree


class Frozen(eqx.Module):
    """A part of a tree that is not optimised: its gradient is zero wherever it is used.

    Paths look through it. `render` and `fit` open it themselves; call `unfreeze` before using a
    frozen node by hand.

    **Arguments:**

    - `value`: any pytree.
    """

    value: Any


def is_frozen(node: Any) -> bool:
    """Whether `node` is a `Frozen` wrapper.

    **Arguments:**

    - `node`: anything.

    **Returns:**

    True for a `Frozen`.
    """
    return isinstance(node, Frozen)


def _stop(leaf: Any) -> Any:
    return stop_gradient(leaf) if eqx.is_array(leaf) else leaf


def unfreeze(tree: PyTree) -> PyTree:
    """Opens every `Frozen` wrapper, stopping the gradient at what was inside.

    **Arguments:**

    - `tree`: any pytree; one without wrappers comes back unchanged.

    **Returns:**

    The same tree without wrappers.
    """

    def open_wrapper(node: Any) -> Any:
        return jax.tree.map(_stop, unfreeze(node.value)) if is_frozen(node) else node

    return jax.tree.map(open_wrapper, tree, is_leaf=is_frozen)
