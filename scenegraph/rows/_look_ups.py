"""Look-ups: arrays indexed by numbers of a row, and what is added to them or put there.

Numbers of tables that all rows share are loaded; those of an array of the row are chosen by
comparing the index with all that it may be. Cotangents of tables are `TableSum`s.
"""

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ._graph import array_of, Node
from ._operands import GROUP, has_type, NotNative, SHARED
from ._values import GroupArray, is_zero, NodeArray, TableRow, TableSum, Term


# An index that may have more values is not looked up in arrays of a row.
_MOST_CHOICES = 256
# Numbers that are loaded together, if they follow each other.
_TOGETHER = 8
# Shared arrays of more numbers are looked up in memory.
_FEW = 8
# Rows of tables of more numbers are loaded where they are looked up in; of so many not at once.
_MOST_LOADED, _MOST_OF_A_ROW = 64, 4096
_BOOL = np.dtype(bool)


class _Index:
    """Arithmetic on indices, which are nodes or known integers."""

    def __init__(self, graph: Any):
        self.graph = graph

    def apply(self, primitive: Any, *operands: Any) -> Node:
        dtype = next(x.dtype for x in operands if isinstance(x, Node))
        nodes = [x if isinstance(x, Node) else self.graph.constant(x, dtype) for x in operands]
        compares = primitive in (lax.eq_p, lax.ge_p, lax.le_p, lax.and_p)
        return self.graph.apply(primitive, nodes, {}, _BOOL if compares else dtype)

    def wide(self, node: Node, largest: int) -> Any:
        """Returns an index in a type that holds all places, or an integer if it is known."""
        if node.is_constant:
            return int(node.value)
        if node.dtype.itemsize >= 4 and largest <= np.iinfo(node.dtype).max:
            return node
        kind = np.dtype(np.uint64 if node.dtype == np.uint64 else np.int64)
        kind = np.dtype(np.int32) if node.dtype.itemsize < 4 and largest < 2**31 else kind
        return self.convert(node, kind)

    def convert(self, node: Node, kind: np.dtype) -> Node:
        params = {"new_dtype": kind, "weak_type": False, "sharding": None}
        return self.graph.apply(lax.convert_element_type_p, [node], params, kind)

    def clamped(self, index: Any, last: int) -> Any:
        """Returns an index between zero and a last one."""
        if isinstance(index, int):
            return min(max(index, 0), last)
        if last == 0:
            return 0
        return self.apply(lax.min_p, self.apply(lax.max_p, index, 0), last)

    def within(self, index: Any, last: int) -> Any:
        """Returns whether an index lies between zero and a last one."""
        if isinstance(index, int):
            return 0 <= index <= last
        return self.apply(
            lax.and_p, self.apply(lax.ge_p, index, 0), self.apply(lax.le_p, index, last)
        )

    def flat(self, origin: Sequence[Any], shape: Sequence[int]) -> tuple[Any, int, int]:
        """Returns a place of an array as an index, its stride, and a known offset."""
        strides = [math.prod(shape[axis + 1 :]) for axis in range(len(shape))]
        pairs = list(zip(origin, strides, strict=True))
        known = sum(x * stride for x, stride in pairs if isinstance(x, int))
        moving = [(x, stride) for x, stride in pairs if not isinstance(x, int)]
        if len(moving) <= 1:
            return (*moving[0], known) if moving else (0, 1, known)
        kind = np.dtype(np.int64 if math.prod(shape) >= 2**31 else np.int32)
        terms = [self.apply(lax.mul_p, self.convert(x, kind), stride) for x, stride in moving]
        total = terms[0]
        for term in terms[1:]:
            total = self.apply(lax.add_p, total, term)
        return total, 1, known

    def within_row(
        self, row: TableRow, place: Any, stride: int, known: int
    ) -> tuple[Node, int, int]:
        """Returns where a place of a row of a table is in the table, as `flat` does."""
        if isinstance(place, int):
            return row.place, row.stride, place * stride + known
        table = row.source.array if isinstance(row.source, GroupArray) else row.source
        kind = np.dtype(np.int64 if table.size >= 2**31 else np.int32)
        first = self.apply(lax.mul_p, self.convert(row.place, kind), row.stride)
        more = self.apply(lax.mul_p, self.convert(place, kind), stride)
        return self.apply(lax.add_p, first, more), 1, known

    def all_of(self, conditions: Sequence[Any]) -> Any:
        """Returns whether all conditions hold: a node, or what is known."""
        nodes = [x for x in conditions if isinstance(x, Node)]
        if not all(x for x in conditions if not isinstance(x, Node)):
            return False
        if not nodes:
            return True
        total = nodes[0]
        for x in nodes[1:]:
            total = self.apply(lax.and_p, total, x)
        return total


def _choose(graph: Any, nodes: np.ndarray, origin: Sequence[Any], window: Sequence[int]) -> Any:
    """Returns a window of an array of nodes from a place on, which lies within it."""
    index = _Index(graph)
    for axis, (start, size) in enumerate(zip(origin, window, strict=True)):
        take = lambda k, x=nodes, axis=axis, size=size: x.take(range(k, k + size), axis)
        if isinstance(start, int):
            nodes = take(start)
            continue
        count = nodes.shape[axis] - size + 1
        if count * math.prod(window[: axis + 1]) > _MOST_CHOICES:
            raise NotNative("a look-up in a large array of a row")
        chosen = take(count - 1)
        for k in reversed(range(count - 1)):
            here = index.apply(lax.eq_p, start, k)
            select = lambda x, y, here=here: graph.apply(lax.select_n_p, [here, x, y], {}, x.dtype)
            chosen = np.vectorize(select, otypes=[object])(chosen, take(k))
        nodes = chosen
    return nodes


class _Array:
    """An array that is looked up in."""

    def __init__(self, scalariser: Any, value: Any, aval: Any):
        self.scalariser, self.value, self.aval = scalariser, value, aval

    def window(self, origin: Sequence[Any], window: Sequence[int]) -> np.ndarray:
        """Returns the nodes of a window from a place on, which lies within the array."""
        graph, shape = self.scalariser.graph, self.aval.shape
        is_known = all(isinstance(x, int) for x in origin)
        table = self.table()
        if table is None or self.aval.size <= _FEW or (is_known and table is not self.value):
            nodes = self.scalariser.as_nodes(self.value, self.aval).nodes
            return _choose(graph, nodes, origin, window)
        if not has_type(self.aval.dtype):
            raise NotNative(f"numbers of type {self.aval.dtype}")
        index = _Index(graph)
        place, stride, known = index.flat(origin, shape)
        if isinstance(table, TableRow):
            place, stride, known = index.within_row(table, place, stride, known)
            table = table.source
        if isinstance(place, int):
            place = graph.constant(place, np.dtype(np.int32))
        return array_of(self._load(table, place, stride, known, _offsets(window, shape)), window)

    def table(self) -> Any:
        """Returns the array in memory that this is, or is a part of; `None` if it is neither."""
        source = self.value.source if isinstance(self.value, NodeArray) else self.value
        return None if isinstance(source, TableSum) else source

    def _load(
        self, table: Any, place: Node, stride: int, first: int, offsets: Sequence[int]
    ) -> list[Node]:
        array, kind = (table.array, GROUP) if isinstance(table, GroupArray) else (table, SHARED)
        operand = self.scalariser.operands.table(array, kind)
        numbers: list[Node] = []
        for columns in _runs([first + x for x in offsets]):
            look_up = self.scalariser.graph.look_up
            numbers += look_up(place, operand, stride, columns, self.aval.dtype)
        return numbers

    def row(self, origin: Sequence[Any], window: Sequence[int]) -> TableRow | None:
        """Returns a large window, if it is a row of a table, as one that is not loaded yet."""
        table, size = self.table(), math.prod(window)
        is_row = window[:1] == (1,) and tuple(window[1:]) == tuple(self.aval.shape[1:])
        if table is None or isinstance(table, TableRow) or not is_row or size <= _MOST_LOADED:
            return None
        place = origin[0]
        if isinstance(place, int):
            place = self.scalariser.graph.constant(place, np.dtype(np.int32))
        return TableRow(table, place, size, tuple(window), self.aval.dtype)

    def whole(self) -> np.ndarray:
        """Returns all numbers of a row of a table."""
        row = self.value
        if self.aval.size > _MOST_OF_A_ROW:
            raise NotNative("a large part of a table")
        nodes = self._load(row.source, row.place, row.stride, 0, range(self.aval.size))
        return array_of(nodes, self.aval.shape)


def _runs(places: Sequence[int]) -> list[range]:
    """Returns ascending places as ranges of those that follow each other, eight at most."""
    runs: list[range] = []
    for place in places:
        if runs and place == runs[-1].stop and len(runs[-1]) < _TOGETHER:
            runs[-1] = range(runs[-1].start, place + 1)
        else:
            runs.append(range(place, place + 1))
    return runs


def _offsets(window: Sequence[int], shape: Sequence[int]) -> list[int]:
    """Returns how far the numbers of a window are from its first one."""
    strides = [math.prod(shape[axis + 1 :]) for axis in range(len(shape))]
    places = itertools.product(*map(range, window))
    return [sum(i * stride for i, stride in zip(x, strides, strict=True)) for x in places] or [0]


def look_up_row(scalariser: Any, value: Any, aval: Any, place: Node) -> NodeArray:
    """Returns a row of an array, whose place lies within it."""
    start = int(place.value) if place.is_constant else place
    origin = [start, *(0 for _ in aval.shape[1:])]
    nodes = _Array(scalariser, value, aval).window(origin, (1, *aval.shape[1:]))
    return NodeArray(nodes.reshape(aval.shape[1:]), aval.dtype)


def _dynamic_slice(scalariser: Any, equation: Any, values: list[Any]) -> list[Any]:
    aval, window = equation.invars[0].aval, equation.params["slice_sizes"]
    origin = _starts(scalariser, equation.invars[1:], values[1:], aval.shape, window)
    array = _Array(scalariser, values[0], aval)
    row = array.row(origin, tuple(window))
    if row is not None:
        return [row]
    return [NodeArray(array.window(origin, window), aval.dtype)]


def load_row(scalariser: Any, value: TableRow) -> NodeArray:
    """Loads a row of a table."""
    aval = jax.ShapeDtypeStruct(value.shape, value.dtype)
    return NodeArray(_Array(scalariser, value, aval).whole(), value.dtype)


def _starts(
    scalariser: Any, variables: Any, values: Any, shape: Sequence[int], window: Sequence[int]
) -> list[Any]:
    """Returns where a slice begins, such that all of it lies within an array."""
    index, origin = _Index(scalariser.graph), []
    for variable, value, size, part in zip(variables, values, shape, window, strict=True):
        node = scalariser.as_nodes(value, variable.aval).nodes.item()
        origin.append(index.clamped(index.wide(node, size), size - part))
    return origin


def _dynamic_update_slice(scalariser: Any, equation: Any, values: list[Any]) -> list[Any]:
    aval, part = equation.invars[0].aval, equation.invars[1].aval
    origin = _starts(scalariser, equation.invars[2:], values[2:], aval.shape, part.shape)
    numbers = scalariser.as_nodes(values[1], part).nodes
    found = [(origin, True, numbers)]
    if _is_table(values[0], aval, found) and not isinstance(values[0], TableSum):
        terms = _terms(_Index(scalariser.graph), found[0], aval.shape)
        return [TableSum.of(aval.shape, aval.dtype, terms)]
    nodes = scalariser.as_nodes(values[0], aval).nodes.copy()
    _put(scalariser.graph, nodes, origin, True, numbers, lambda old, new: new)
    return [NodeArray(nodes, aval.dtype)]


def _put(
    graph: Any,
    nodes: np.ndarray,
    origin: Sequence[Any],
    there: Any,
    numbers: np.ndarray,
    combine: Callable[[Node, Node], Node],
) -> None:
    """Combines a window of an array, from a place on, with numbers, if it is `there`."""
    if there is False:
        return
    index = _Index(graph)
    counts = [
        range(x, x + 1) if isinstance(x, int) else range(size - part + 1)
        for x, size, part in zip(origin, nodes.shape, numbers.shape, strict=True)
    ]
    if math.prod(map(len, counts)) * max(numbers.size, 1) > 4 * _MOST_CHOICES:
        raise NotNative("an update of a large array of a row")
    old = nodes.copy()
    for corner in itertools.product(*counts):
        same = [
            index.apply(lax.eq_p, x, k)
            for x, k in zip(origin, corner, strict=True)
            if not isinstance(x, int)
        ]
        here = index.all_of([there, *same])
        for place in np.ndindex(numbers.shape):
            at = tuple(k + i for k, i in zip(corner, place, strict=True))
            new = combine(old.item(at), numbers.item(place))
            # Windows overlap: only one of them is the one.
            nodes[at] = (
                new
                if here is True
                else graph.apply(lax.select_n_p, [here, nodes[at], new], {}, new.dtype)
            )


class _Windows:
    """Windows of an operand that a `gather` or a `scatter` names by indices."""

    def __init__(self, scalariser: Any, indices: Any, aval: Any, window: Sequence[int], dims: Any):
        self.index, self.window, self.dims = _Index(scalariser.graph), window, dims
        self.nodes = scalariser.as_nodes(indices, aval).nodes
        self.batch = self.nodes.shape[:-1]

    def origin(self, position: tuple[int, ...], shape: Sequence[int]) -> list[Any]:
        """Returns where the window of a position begins: nodes, or known integers."""
        _, axes, batched, batches = self.dims
        origin: list[Any] = [0] * len(shape)
        for axis, node in zip(axes, self.nodes[position], strict=True):
            origin[axis] = self.index.wide(node, shape[axis])
        for axis, number in zip(batched, batches, strict=True):
            origin[axis] = position[number]
        return origin

    def lasts(self, shape: Sequence[int]) -> list[int]:
        """Returns where a window may begin at most along every axis."""
        return [size - part for size, part in zip(shape, self.window, strict=True)]


def _gather(scalariser: Any, equation: Any, values: list[Any]) -> list[NodeArray]:
    params, dims = equation.params, equation.params["dimension_numbers"]
    aval, out, graph = equation.invars[0].aval, equation.outvars[0].aval, scalariser.graph
    window = params["slice_sizes"]
    gone = {*dims.collapsed_slice_dims, *dims.operand_batching_dims}
    kept = tuple(size for axis, size in enumerate(window) if axis not in gone)
    where = gone, dims.start_index_map, dims.operand_batching_dims, dims.start_indices_batching_dims
    windows = _Windows(scalariser, values[1], equation.invars[1].aval, window, where)
    array, lasts = _Array(scalariser, values[0], aval), windows.lasts(aval.shape)
    fills = params["mode"] == lax.GatherScatterMode.FILL_OR_DROP
    parts = np.empty((*windows.batch, *kept), object)
    for position in np.ndindex(windows.batch):
        origin = windows.origin(position, aval.shape)
        pairs = list(zip(origin, lasts, strict=True))
        nodes = array.window([windows.index.clamped(*x) for x in pairs], window).reshape(kept)
        if fills:
            there = windows.index.all_of([windows.index.within(*x) for x in pairs])
            nodes = _filled(
                graph, nodes, there, _fill(params["fill_value"], aval.dtype), aval.dtype
            )
        parts[position] = nodes if kept else nodes.item()
    # The axes of windows stand where `offset_dims` says.
    rest = [axis for axis in range(len(out.shape)) if axis not in dims.offset_dims]
    order = np.argsort([*rest, *dims.offset_dims])
    return [NodeArray(parts.transpose(order), aval.dtype)]


def _filled(graph: Any, nodes: np.ndarray, there: Any, fill: Any, dtype: Any) -> np.ndarray:
    if there is True:
        return nodes
    other = graph.constant(fill, dtype)
    if there is False:
        return np.full(nodes.shape, other, object)
    pick = lambda x: graph.apply(lax.select_n_p, [there, other, x], {}, dtype)
    return np.vectorize(pick, otypes=[object])(nodes) if nodes.size else nodes


def _fill(value: Any, dtype: np.dtype) -> Any:
    """Returns what JAX fills in for places that are not there."""
    if value is not None:
        return value
    if jnp.issubdtype(dtype, jnp.inexact):
        return np.nan
    if dtype == _BOOL:
        return True
    return np.iinfo(dtype).min if dtype.kind == "i" else np.iinfo(dtype).max


def _scatter(scalariser: Any, equation: Any, values: list[Any]) -> list[Any] | None:
    params, dims = equation.params, equation.params["dimension_numbers"]
    aval, updates = equation.invars[0].aval, equation.invars[2].aval
    graph, name = scalariser.graph, equation.primitive.name
    gone = {*dims.inserted_window_dims, *dims.operand_batching_dims}
    sizes = iter([updates.shape[axis] for axis in dims.update_window_dims])
    window = [1 if axis in gone else next(sizes) for axis in range(len(aval.shape))]
    axes = dims.scatter_dims_to_operand_dims, dims.operand_batching_dims
    where = gone, *axes, dims.scatter_indices_batching_dims
    windows = _Windows(scalariser, values[1], equation.invars[1].aval, window, where)
    # Updates with the axes of windows last.
    numbers = scalariser.as_nodes(values[2], updates).nodes
    front = [axis for axis in range(numbers.ndim) if axis not in dims.update_window_dims]
    numbers = numbers.transpose(*front, *dims.update_window_dims)
    clips = params["mode"] == lax.GatherScatterMode.CLIP
    lasts, found = windows.lasts(aval.shape), []
    for position in np.ndindex(windows.batch):
        pairs = list(zip(windows.origin(position, aval.shape), lasts, strict=True))
        there = True if clips else windows.index.all_of([windows.index.within(*x) for x in pairs])
        origin = [windows.index.clamped(*x) for x in pairs]
        part = np.asarray(numbers[position], object).reshape(window)
        found.append((origin, there, part))
    if name in ("scatter-add", "scatter_add") and _is_table(values[0], aval, found):
        there = [x for x in found if x[1] is not False]
        terms = [term for x in there for term in _terms(windows.index, x, aval.shape)]
        if isinstance(values[0], TableSum):
            whole = TableSum.of(aval.shape, aval.dtype, terms)
            return [TableSum(aval.shape, aval.dtype, [*values[0].parts, *whole.parts])]
        return [TableSum.of(aval.shape, aval.dtype, terms)]
    nodes = scalariser.as_nodes(values[0], aval).nodes.copy()
    for origin, there, part in found:
        _put(graph, nodes, origin, there, part, _combination(graph, name, aval.dtype))
    return [NodeArray(nodes, aval.dtype)]


def _is_table(value: Any, aval: Any, found: Sequence[Any]) -> bool:
    """Returns true if what is added to is nothing yet, and large or rows differ in their places."""
    if isinstance(value, TableSum):
        return True
    moving = any(isinstance(x, Node) for origin, *_ in found for x in origin)
    return aval.size > (_FEW if moving else _MOST_CHOICES) and is_zero(value)


def _terms(index: _Index, window: Any, shape: Sequence[int]) -> list[Term]:
    """Returns the numbers of a window as terms of a table: of its rows if it has whole ones."""
    origin, there, numbers = window
    place, stride, known = index.flat(origin, shape)
    offsets = [known + x for x in _offsets(numbers.shape, shape)]
    kind = np.dtype(np.int64 if math.prod(shape) >= 2**31 else np.int32)
    constant = lambda number: index.graph.constant(number, kind)
    place = constant(place) if isinstance(place, int) else index.convert(place, kind)

    def term(place: Node, stride: int, numbers: list[Node]) -> Term:
        if there is not True:
            select = [there, constant(-1), place]
            place = index.graph.apply(lax.select_n_p, select, {}, kind)
        return Term(place, stride, numbers)

    nodes = list(numbers.reshape(-1))
    if stride > 1 and offsets == list(range(stride)):
        return [term(place, stride, nodes)]
    first = index.apply(lax.mul_p, place, stride)
    places = [index.apply(lax.add_p, first, offset) for offset in offsets]
    return [term(x, 1, [node]) for x, node in zip(places, nodes, strict=True)]


def _combination(graph: Any, name: str, dtype: Any) -> Callable[[Node, Node], Node]:
    primitive = _COMBINATIONS[name]
    if primitive is None:
        return lambda old, new: new
    return lambda old, new: graph.apply(primitive, [old, new], {}, dtype)


_COMBINATIONS = {
    "scatter": None,
    "scatter-add": lax.add_p,
    "scatter-mul": lax.mul_p,
    "scatter_mul": lax.mul_p,
    "scatter-min": lax.min_p,
    "scatter-max": lax.max_p,
    "scatter_min": lax.min_p,
    "scatter_max": lax.max_p,
    "scatter_add": lax.add_p,
}

# By the names of primitives; each maps the scalariser, the equation and its values to results.
LOOK_UPS: dict[str, Callable[[Any, Any, list[Any]], Any]] = {
    "dynamic_slice": _dynamic_slice,
    "dynamic_update_slice": _dynamic_update_slice,
    "gather": _gather,
    **dict.fromkeys(_COMBINATIONS, _scatter),
}
