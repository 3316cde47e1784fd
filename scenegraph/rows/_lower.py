"""Lowering of `map_rows`: to a native kernel on a CPU of this process, else to `jax.vmap`."""

import contextlib
import contextvars
import functools
import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp

from .._jax import ClosedJaxpr
from .._typing import Array, PyTree
from ._by_vmap import by_vmap, count_rows, LARGE
from ._call import call_native
from ._log import say
from ._operands import NotNative
from ._target import is_available


# Blocks of rows under `jax.vmap` are small, because all that an operation computes is stored.
_VMAP_NUMBERS, _FEWEST_VMAP_ROWS = 2**20, 2**7
# Operations that make large tables to which rows add.
_TABLES = "broadcast_in_dim", "scatter-add", "scatter_add", "add_any"

# True where all maps are left to `jax.vmap`.
_plain = contextvars.ContextVar("plain", default=False)


@contextlib.contextmanager
def lower_by_vmap() -> Iterator[None]:
    """Leaves all maps compiled within to `jax.vmap`: they compile sooner, and run slower."""
    token = _plain.set(True)
    try:
        yield
    finally:
        _plain.reset(token)


def by_kernel(
    *values: Array,
    jaxpr: ClosedJaxpr,
    varying: Any,
    reduced: Any,
    groups: int,
    name: str,
    guard: int | None,
) -> list[Array]:
    """Maps a jaxpr over rows by a native kernel, or by `jax.vmap` what has no native code."""
    how = {"jaxpr": jaxpr, "varying": varying, "reduced": reduced, "groups": groups, "guard": guard}
    if count_rows(values, varying) == 0 or not is_available() or _plain.get():
        return by_vmap_in_blocks(*values, **how, name=name)
    begin = time.perf_counter()
    try:
        results, nodes = call_native(values, **how)
        said = f"native, {nodes} nodes"
    except NotNative as reason:
        results = by_vmap_in_blocks(*values, **how, name=name)
        said = f"not native: {reason}"
    say(name, jaxpr, varying, said, time.perf_counter() - begin)
    return results


def by_vmap_in_blocks(
    *values: Array, jaxpr: ClosedJaxpr, varying: Any, reduced: Any, **others: Any
) -> list[Array]:
    """Maps a jaxpr over rows with `jax.vmap`, in blocks."""
    rows, scalars = count_rows(values, varying), _count_scalars(jaxpr.jaxpr)
    blocks = _count_blocks(rows, max(_VMAP_NUMBERS // max(scalars, 1), _FEWEST_VMAP_ROWS))
    how = {"jaxpr": jaxpr, "varying": varying, "reduced": reduced, **others}
    blocks = blocks if others["groups"] == 1 else 1
    return _in_blocks(functools.partial(by_vmap, **how), blocks, values, varying, reduced)


def _in_blocks(
    one_block: Callable, blocks: int, values: Sequence[Array], varying: Any, reduced: Any
) -> list[Array]:
    """Calls a function of some rows block by block, and joins or adds what it returns."""
    rows = count_rows(values, varying)
    if blocks == 1:
        return one_block(*values)

    def some_rows(parts: list[Array]) -> list[Array]:
        block = iter(parts)
        return one_block(*(next(block) if x else v for v, x in zip(values, varying, strict=True)))

    split = lambda x: x.reshape(blocks, rows // blocks, *x.shape[1:])
    parts = [split(value) for value, varies in zip(values, varying, strict=True) if varies]
    shapes = jax.eval_shape(some_rows, [x[0] for x in parts])
    start = [jnp.zeros(x.shape, x.dtype) for x in itertools.compress(shapes, reduced)]

    def step(sums: list[Array], parts: list[Array]) -> tuple[list[Array], list[Array]]:
        results = some_rows(parts)
        more = itertools.compress(results, reduced)
        sums = [x + y for x, y in zip(sums, more, strict=True)]
        return sums, [x for x, is_reduced in zip(results, reduced, strict=True) if not is_reduced]

    sums, rest = map(iter, jax.lax.scan(step, start, parts))
    join = lambda x: x.reshape(rows, *x.shape[2:])
    return [next(sums) if is_reduced else join(next(rest)) for is_reduced in reduced]


def _count_blocks(rows: int, most: int) -> int:
    """Returns a number of blocks of equal size, none much larger than `most` rows."""
    # The least number from there on that divides the rows; one block if none is near.
    fewest = max(-(-rows // most), 1)
    return next((n for n in range(fewest, 2 * fewest) if rows % n == 0), 1)


def count_scalars(function: Callable, *operands: PyTree) -> tuple[int, PyTree]:
    """Returns how many scalars a function of one row computes, and the shapes of its results."""
    jaxpr, shapes = jax.make_jaxpr(function, return_shape=True)(*operands)
    return _count_scalars(jaxpr.jaxpr), shapes


def _count_scalars(jaxpr: Any) -> int:
    total = 0
    for equation in jaxpr.eqns:
        inner = [equation.params[key] for key in ("jaxpr", "call_jaxpr") if key in equation.params]
        total += sum(_count_scalars(getattr(x, "jaxpr", x)) for x in inner)
        sizes = () if inner else (x.aval.size for x in equation.outvars)
        # Tables of zeros, and what is added to them, are no row's own.
        is_table = equation.primitive.name in _TABLES
        total += sum(size for size in sizes if not (is_table and size > LARGE))
    return total
