"""`map_rows`: a map of a small function over rows, made for CPUs."""

import functools
from collections.abc import Callable
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.core import Tracer

from .._jax import HAS_PRIMITIVES
from .._typing import Array, PyTree
from ._by_vmap import by_vmap
from ._lower import by_kernel, by_vmap_in_blocks
from ._operands import ROW, SHARED
from ._primitive import define_map, row_avals, trace_row


map_rows_p: Any = None
if HAS_PRIMITIVES:
    map_rows_p = define_map("map_rows", by_vmap, by_vmap_in_blocks, native=by_kernel)


def map_rows(
    function: Callable[[Any, Any], PyTree],
    shared: PyTree,
    rows: PyTree,
    *,
    used: Array | None = None,
) -> PyTree:
    """Maps a small function over rows, such as rays: a `jax.vmap` made for CPUs.

    On a CPU the function becomes one kernel, in which all that a row computes stays in registers:
    elementwise operations, small arrays, loops, branches, and look-ups in shared tables of any
    size. Derivatives of any kind are taken of the function of one row, and computed in one pass
    together with what they need of it: nothing is stored. Wherever there is no kernel, `jax.vmap`
    computes the same. A function with effects, such as `jax.debug.print`, is called row by row.

    **Arguments:**

    - `function`: a function of `shared` and one row.
    - `shared`: a tree that all rows use.
    - `rows`: a tree of arrays with one leading axis over rows.
    - `used`: booleans, `rows`: which rows are computed. The others have zeros as results, and no
      derivatives; by default, there are none. Keyword only argument.

    **Returns:**

    The results of the function, with a leading axis over rows.

    Example: the lengths of two vectors.

    ```python
    lengths = sg.rows.map_rows(lambda unit, x: unit * jnp.linalg.norm(x), 1.0, jnp.eye(3)[:2])
    ```
    """
    shared, static = eqx.partition(shared, _is_operand)
    rows, rest = eqx.partition(rows, eqx.is_array)
    call = lambda shared, row: function(eqx.combine(shared, static), eqx.combine(row, rest))
    if not HAS_PRIMITIVES:
        return jax.vmap(partial(_if_used, call), (None, 0, 0))(shared, rows, used)
    # Flags of rows are operands like others, of which no row's function asks.
    of_row = lambda shared, rows, flag: call(shared, rows)
    flat, structure = jax.tree.flatten((shared, rows, used))
    of_rows = len(flat) - len(jax.tree.leaves(shared))
    varying = (SHARED,) * (len(flat) - of_rows) + (ROW,) * of_rows
    jaxpr, out, captured = trace_row(of_row, structure, row_avals(flat, varying))
    if jaxpr.effects:
        # Callbacks run row by row: no pass of the compiler knows of them.
        return jax.lax.map(lambda row: _if_used(call, shared, *row), (rows, used))
    varying = (SHARED,) * len(captured) + varying
    how = {"jaxpr": jaxpr, "varying": varying, "groups": 1, "name": _name(function)}
    how["guard"] = None if used is None else len(varying) - 1
    reduced = (SHARED,) * len(jaxpr.out_avals)
    results = map_rows_p.bind(*captured, *flat, **how, reduced=reduced)
    return jax.tree.unflatten(jax.tree.structure(out), results)


def _if_used(call: Callable, shared: PyTree, row: PyTree, used: Array | None) -> PyTree:
    """Calls a function of one row if the row is used; zeros else."""
    if used is None:
        return call(shared, row)
    shape = jax.eval_shape(call, shared, row)
    zeros = lambda *_: jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), shape)
    return jax.lax.cond(used, call, zeros, shared, row)


def _name(function: Callable) -> str:
    """Returns what the log of compilations calls a function."""
    while isinstance(function, functools.partial):
        function = function.func
    name = getattr(function, "__qualname__", type(function).__qualname__)
    return f"{getattr(function, '__module__', '')}.{name}".replace(".<locals>", "")


# Shared arrays of no more numbers, known when the function is traced, are constants of it.
_FEW_NUMBERS = 64


def _is_operand(x: Any) -> bool:
    """Returns false for what is no array, and for small arrays whose numbers can be folded."""
    return eqx.is_array(x) and (isinstance(x, Tracer) or x.size > _FEW_NUMBERS)


def as_operands(tree: PyTree) -> PyTree:
    """Returns a tree whose arrays no kernel has as constants: it serves other ones, too."""
    is_key = lambda x: jnp.issubdtype(x.dtype, jax.dtypes.prng_key)
    arrays, rest = eqx.partition(tree, lambda x: eqx.is_array(x) and not is_key(x))
    return eqx.combine(jax.lax.optimization_barrier(arrays), rest)
