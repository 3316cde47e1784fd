"""Sorting of small arrays of a row, by networks of comparisons."""

from collections.abc import Iterator, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from ._graph import array_of, Graph, Node


# Longer arrays are not sorted number by number.
_LONGEST = 128

_Arrays = list[np.ndarray]
_BOOL = np.dtype(bool)


def sort_arrays(graph: Graph, equation: Any, arrays: _Arrays) -> _Arrays | None:
    """Sorts arrays along an axis by the first of them, or some."""
    axis, keys = equation.params["dimension"], equation.params["num_keys"]
    return _sorted(graph, arrays, axis, keys)


def take_largest(graph: Graph, equation: Any, arrays: _Arrays) -> _Arrays | None:
    """Returns the largest numbers along an axis, in descending order, and their places."""
    count, axis = equation.params["k"], equation.params.get("axis", -1) % arrays[0].ndim
    dtype = equation.outvars[1].aval.dtype
    numbers = np.moveaxis(arrays[0], axis, -1)
    places = [graph.constant(k, dtype) for k in range(numbers.shape[-1])]
    places = np.broadcast_to(array_of(places, (len(places),)), numbers.shape)
    found = _sorted(graph, [numbers, places], numbers.ndim - 1, 1, descending=True)
    return found and [np.moveaxis(x[..., :count], -1, axis) for x in found]


def find_extreme(graph: Graph, equation: Any, arrays: _Arrays) -> _Arrays | None:
    """Finds the place of the least or the largest number along an axis: the first of several."""
    [axis], dtype = equation.params["axes"], equation.params["index_dtype"]
    order = lax.gt_p if equation.primitive.name == "argmax" else lax.lt_p
    front = np.moveaxis(arrays[0], axis, -1)
    if not front.shape[-1]:
        return None

    def first(nodes: Sequence[Node]) -> Node:
        best, place = nodes[0], graph.constant(0, dtype)
        for k, node in enumerate(nodes[1:], 1):
            better = graph.apply(order, [node, best], {}, _BOOL)
            if _is_floating(node.dtype):
                # The first that is not a number goes before all others.
                bad, worse = _is_nan(graph, node), _not(graph, _is_nan(graph, best))
                better = _either(graph, better, _both(graph, bad, worse))
            choose = lambda x, y, better=better: _choose(graph, better, x, y)
            best, place = choose(node, best), choose(graph.constant(k, dtype), place)
        return place

    places = [first(list(nodes)) for nodes in front.reshape(-1, front.shape[-1])]
    return [array_of(places, front.shape[:-1])]


def _sorted(
    graph: Graph, arrays: _Arrays, axis: int, keys: int, *, descending: bool = False
) -> _Arrays | None:
    fronts = [np.moveaxis(x, axis, -1) for x in arrays]
    shape, length = fronts[0].shape, arrays[0].shape[axis]
    if length > _LONGEST:
        return None
    lists = zip(*(x.reshape(-1, length) for x in fronts), strict=True)
    rows = [_sort(graph, list(zip(*x, strict=True)), keys, descending) for x in lists]
    results = []
    for k in range(len(arrays)):
        nodes = [entry[k] for row in rows for entry in row]
        results.append(np.moveaxis(array_of(nodes, shape), -1, axis))
    return results


def _sort(
    graph: Graph, entries: list[tuple[Node, ...]], keys: int, descending: bool
) -> list[tuple[Node, ...]]:
    """Sorts entries by their first nodes; equal ones stay in their order."""
    kind = np.dtype(np.int32)
    entries = [(*entry, graph.constant(k, kind)) for k, entry in enumerate(entries)]
    for i, j in _network(len(entries)):
        first, second = entries[i], entries[j]
        swap = _goes_before(graph, second, first, keys, descending)
        choose = lambda x, y, swap=swap: _choose(graph, swap, x, y)
        entries[i] = tuple(map(choose, second, first))
        entries[j] = tuple(map(choose, first, second))
    return [entry[:-1] for entry in entries]


def _network(length: int) -> Iterator[tuple[int, int]]:
    """Returns the pairs that K. Batcher's odd-even merge sort compares."""
    size = 1
    while size < length:
        step = size
        while step > 0:
            for start in range(step % size, length - step, 2 * step):
                for i in range(start, min(start + step, length - step)):
                    if i // (2 * size) == (i + step) // (2 * size):
                        yield i, i + step
            step //= 2
        size *= 2


def _goes_before(graph: Graph, x: Any, y: Any, keys: int, descending: bool) -> Node:
    """Returns whether an entry goes before another: by its keys, then by its place."""
    before = graph.apply(lax.lt_p, [x[-1], y[-1]], {}, _BOOL)
    for k in reversed(range(keys)):
        less, same = _compare(graph, *((y[k], x[k]) if descending else (x[k], y[k])))
        before = _either(graph, less, _both(graph, same, before))
    return before


def _compare(graph: Graph, x: Node, y: Node) -> tuple[Node, Node]:
    """Returns whether a number is less than another, and whether equal: NaN is the largest."""
    less = graph.apply(lax.lt_p, [x, y], {}, _BOOL)
    same = graph.apply(lax.eq_p, [x, y], {}, _BOOL)
    if not _is_floating(x.dtype):
        return less, same
    first, second = _is_nan(graph, x), _is_nan(graph, y)
    less = _either(graph, less, _both(graph, second, _not(graph, first)))
    return less, _either(graph, same, _both(graph, first, second))


def _is_floating(dtype: Any) -> bool:
    return jnp.issubdtype(dtype, jnp.floating)


def _is_nan(graph: Graph, x: Node) -> Node:
    return graph.apply(lax.ne_p, [x, x], {}, _BOOL)


def _not(graph: Graph, x: Node) -> Node:
    return graph.apply(lax.not_p, [x], {}, _BOOL)


def _both(graph: Graph, x: Node, y: Node) -> Node:
    return graph.apply(lax.and_p, [x, y], {}, _BOOL)


def _either(graph: Graph, x: Node, y: Node) -> Node:
    return graph.apply(lax.or_p, [x, y], {}, _BOOL)


def _choose(graph: Graph, which: Node, x: Node, y: Node) -> Node:
    return graph.apply(lax.select_n_p, [which, y, x], {}, x.dtype)
