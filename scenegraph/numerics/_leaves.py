import reprlib
from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from .._jax import trace_state_clean
from .._typing import Array, PyTree
from ._tied import is_tied


def as_float_leaf(value):
    """Turns what a user types into a differentiable array leaf.

    Integers and Python numbers become the default float type (float64 when x64 is on); floating
    arrays keep their type. Arrays that are being traced, and places of tied leaves, pass through
    unchanged.

    **Arguments:**

    - `value`: a number, a nested sequence of numbers, or an array of any shape.

    **Returns:**

    A floating `jax.Array` of the same shape.

    **Errors:**

    `TypeError` for values that are not numbers, booleans included.
    """
    return _as_leaf(value)


# Places of tied leaves pass through, which `Array` does not say: types follow from it elsewhere.
def _as_leaf(value: Any) -> Array:
    if is_tied(value):
        return value
    if isinstance(value, list | tuple):
        value = _stack(value)
    if not eqx.is_array_like(value):
        raise TypeError(f"a physical quantity must be a number or an array; got {value!r}")
    typed = eqx.is_array(value) or isinstance(value, np.ndarray)
    kind = value.dtype if typed else np.result_type(value)
    if not jnp.issubdtype(kind, jnp.floating) and not jnp.issubdtype(kind, jnp.integer):
        raise TypeError(f"a physical quantity must be real; got {value!r} of type {kind}")
    kept = typed and jnp.issubdtype(kind, jnp.floating)
    if not isinstance(value, jax.Array) and trace_state_clean():
        # Another way than `jnp.asarray`, which compiles a program for every shape.
        leaf: Any = np.array(value, jax.dtypes.canonicalize_dtype(kind if kept else float))
        return jax.device_put(leaf)
    array = jnp.asarray(value, dtype=None if kept else float)
    # JAX's weak type would make equal scenes compile twice.
    return lax.convert_element_type(array, array.dtype) if array.weak_type else array


def common_type(*trees: PyTree) -> Any:
    """Returns the type in which the floating arrays of trees are computed with each other."""
    types = {x.dtype for x in jax.tree.leaves(trees) if eqx.is_inexact_array(x)}
    return jnp.result_type(*types) if types else jnp.zeros(()).dtype


def as_type(tree: PyTree, dtype: Any) -> PyTree:
    """Converts the floating arrays of a tree."""
    return jax.tree.map(lambda x: x.astype(dtype) if eqx.is_inexact_array(x) else x, tree)


def _stack(rows: Sequence[Any]) -> Array | np.ndarray:
    """Makes one array of numbers and arrays in rows."""
    try:
        if all(type(x) in (int, float) for x in jax.tree.leaves(rows)):
            return np.asarray(rows)
        return jnp.asarray(rows)
    except (TypeError, ValueError) as error:
        if type(error) not in (TypeError, ValueError) or any(map(is_tied, rows)):
            raise
        raise TypeError(
            f"a physical quantity must be numbers in rows of one length; got {reprlib.repr(rows)}"
        ) from None
