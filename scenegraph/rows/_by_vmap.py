"""Maps over rows by `jax.vmap`: wherever there is no kernel.

The cotangent of a look-up adds to a table of zeros. For every row such a table would be as much
memory as there are rows and places; so places and numbers are kept, and added to one table.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from .._jax import ClosedJaxpr, jaxpr_as_fun, Literal
from .._typing import Array
from ._operands import GROUP, ROW, SHARED


# What is added to smaller tables is added row by row, and then over rows.
LARGE = 2**10
# By their names, where calls have what they call.
CALLS = {
    "jit": "jaxpr",
    "pjit": "jaxpr",
    "closed_call": "call_jaxpr",
    "core_call": "call_jaxpr",
    "custom_jvp_call": "call_jaxpr",
    "custom_vjp_call": "call_jaxpr",
    "custom_vmap_call": "call",
    "checkpoint": "jaxpr",
    "remat": "jaxpr",
    "remat2": "jaxpr",
}


def count_rows(values: Sequence[Any], kinds: Sequence[int]) -> int:
    """Returns the number of rows of operands."""
    return values[kinds.index(ROW)].shape[0]


def by_vmap(
    *values: Array,
    jaxpr: ClosedJaxpr,
    varying: Any,
    reduced: Any,
    groups: int,
    name: str,
    guard: int | None,
) -> list[Array]:
    """Maps a jaxpr over rows with `jax.vmap`."""
    del name
    rows = count_rows(values, varying)
    split = lambda x: x.reshape(groups, rows // groups, *x.shape[1:])
    values = tuple(split(x) if kind == ROW else x for x, kind in zip(values, varying, strict=True))
    within = [0 if kind == ROW else None for kind in varying]
    over = [0 if kind else None for kind in varying]
    one_row = _Row(jaxpr, reduced) if _has_large_sums(jaxpr, reduced) else jaxpr_as_fun(jaxpr)

    def guarded_row(*values: Array) -> list[Any]:
        results = one_row(*values)
        if guard is None:
            return results
        # Of a table to which rows add, those that are not used add zeros.
        return jax.tree.map(partial(_unless, ~values[guard]), results)

    def one_group(*values: Array) -> list[Array]:
        results = jax.vmap(guarded_row, within, axis_size=rows // groups)(*values)
        return [
            _total(x, aval) if kind else x
            for x, aval, kind in zip(results, jaxpr.out_avals, reduced, strict=True)
        ]

    results = jax.vmap(one_group, over, axis_size=groups)(*values)
    join = {
        SHARED: lambda x: x.reshape(rows, *x.shape[2:]),
        ROW: lambda x: jnp.sum(x, axis=0),
        GROUP: lambda x: x,
    }
    return [join[kind](x) for x, kind in zip(results, reduced, strict=True)]


def _unless(unused: Array, x: Array) -> Array:
    return jnp.where(unused, jnp.zeros((), x.dtype), x)


def _has_large_sums(jaxpr: ClosedJaxpr, reduced: Sequence[int]) -> bool:
    pairs = zip(jaxpr.out_avals, reduced, strict=True)
    return any(kind and aval.size > LARGE for aval, kind in pairs)


@jax.tree_util.register_pytree_node_class
class _Additions:
    """Additions to a table of zeros: places, numbers, and how these are meant."""

    def __init__(self, parts: list[tuple[Array, Array]], how: tuple[dict, ...]):
        self.parts, self.how = parts, how

    def tree_flatten(self) -> Any:
        return (self.parts,), self.how

    @classmethod
    def tree_unflatten(cls, how: Any, children: Any) -> "_Additions":
        return cls(children[0], how)

    def table(self, aval: Any, *, axes: int) -> Array:
        """Adds everything up; places and numbers have so many axes in front of a row's own."""
        table = jnp.zeros(aval.shape, aval.dtype)
        for (places, numbers), how in zip(self.parts, self.how, strict=True):
            dims = how["dimension_numbers"]
            # The axes of rows are further axes of places.
            moved = dims._replace(
                update_window_dims=tuple(x + axes for x in dims.update_window_dims),
                scatter_indices_batching_dims=tuple(
                    x + axes for x in dims.scatter_indices_batching_dims
                ),
            )
            table = lax.scatter_add(table, places, numbers, moved, mode=how["mode"])
        return table


class _Zeros:
    """A table of zeros of some shape."""

    def __init__(self, aval: Any):
        self.aval = aval


def _total(value: Any, aval: Any) -> Array:
    """Returns the sum over rows."""
    return value.table(aval, axes=1) if isinstance(value, _Additions) else jnp.sum(value, axis=0)


class _Row:
    """A function of one row, whose results that are summed may be `_Additions`."""

    def __init__(self, jaxpr: ClosedJaxpr, reduced: Sequence[int]):
        self._jaxpr, self._reduced = jaxpr, reduced

    def __call__(self, *values: Array) -> list[Any]:
        results = self._run(self._jaxpr.jaxpr, self._jaxpr.consts, values)
        triples = zip(results, self._jaxpr.out_avals, self._reduced, strict=True)
        return [x if kind and isinstance(x, _Additions) else _array(x, a) for x, a, kind in triples]

    def _run(self, jaxpr: Any, consts: Sequence[Any], values: Sequence[Any]) -> list[Any]:
        known = dict(zip([*jaxpr.constvars, *jaxpr.invars], [*consts, *values], strict=True))
        look_up = lambda x: x.val if isinstance(x, Literal) else known[x]
        for equation in jaxpr.eqns:
            operands = [look_up(x) for x in equation.invars]
            results = self._equation(equation, operands)
            known.update(zip(equation.outvars, results, strict=True))
        return [look_up(x) for x in jaxpr.outvars]

    def _equation(self, equation: Any, values: list[Any]) -> Sequence[Any]:
        name, params = equation.primitive.name, equation.params
        avals = [x.aval for x in equation.invars]
        if name in CALLS and CALLS[name] in params:
            inner = params[CALLS[name]]
            return self._run(getattr(inner, "jaxpr", inner), getattr(inner, "consts", ()), values)
        if _is_zero(name, values):
            return [_Zeros(equation.outvars[0].aval)]
        lazy = [isinstance(x, _Zeros | _Additions) for x in values]
        if name in ("scatter-add", "scatter_add") and lazy[0] and not any(lazy[1:]):
            how = {"dimension_numbers": params["dimension_numbers"], "mode": params["mode"]}
            return [_more(values[0], values[1], values[2], how)]
        if name == "dynamic_update_slice" and isinstance(values[0], _Zeros) and not any(lazy[1:]):
            return [_slice_as_additions(values, avals)]
        if name == "add_any" and all(lazy):
            some = [x for x in values if isinstance(x, _Additions)]
            if not some:
                return [values[0]]
            parts, how = [p for x in some for p in x.parts], tuple(h for x in some for h in x.how)
            return [_Additions(parts, how)]
        arrays = [_array(x, aval) for x, aval in zip(values, avals, strict=True)]
        results = equation.primitive.bind(*arrays, **params)
        return results if equation.primitive.multiple_results else [results]


def _is_zero(name: str, values: list[Any]) -> bool:
    is_number = len(values) == 1 and isinstance(values[0], np.generic | np.ndarray | float | int)
    return name == "broadcast_in_dim" and is_number and not np.any(values[0])


def _more(table: Any, places: Array, numbers: Array, how: dict) -> _Additions:
    before = table if isinstance(table, _Additions) else _Additions([], ())
    return _Additions([*before.parts, (places, numbers)], (*before.how, how))


def _slice_as_additions(values: list[Any], avals: list[Any]) -> _Additions:
    """Returns what puts a slice into a table of zeros."""
    _, numbers, *starts = values
    table, part = avals[:2]
    lasts = [size - own for size, own in zip(table.shape, part.shape, strict=True)]
    starts = [jnp.clip(x, 0, last) for x, last in zip(starts, lasts, strict=True)]
    axes = tuple(range(len(table.shape)))
    dims = lax.ScatterDimensionNumbers(axes, (), axes)
    how = {"dimension_numbers": dims, "mode": lax.GatherScatterMode.CLIP}
    return _more(None, jnp.stack([jnp.asarray(x, jnp.int32) for x in starts]), numbers, how)


def _array(value: Any, aval: Any) -> Any:
    if isinstance(value, _Zeros):
        return jnp.zeros(aval.shape, aval.dtype)
    return value.table(aval, axes=0) if isinstance(value, _Additions) else value
