"""Code generation for blocks of rows: the nodes of a graph as a few loops over rows.

Between calls on arrays, such as look-ups, all nodes are elementwise. A stage of them is one loop:
a kernel that computes all of its nodes, row after row. Stages too large for that are cut.
"""

import collections
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import lax

from .._typing import Array
from ._emit_kernels import shielded
from ._graph import Node, topological_order
from ._row_loop import COLUMN, loop_over_rows, NUMBER, OperandCount, RESULT


# The most nodes and operands of a loop. Measured: LLVM vectorises loops with 112 operands, and
# none with 128; and loops of 3,000 nodes, but none of 3,700.
_MOST_NODES, _MOST_OPERANDS = 3000, 96
# Less than so many nodes for each result are left to XLA, which fuses them with what uses them.
_FEW_NODES = 3


class Loops:
    """A graph as one loop for every stage, or several for large ones, and its nodes' values."""

    def __init__(self, outputs: Sequence[Node], rows: int):
        self._rows, self._outputs = rows, outputs
        self._values: dict[Node, Any] = {}
        self._stages = _split(topological_order(outputs), set(outputs))

    @property
    def are_whole(self) -> bool:
        """True if no stage is cut."""
        return all(len(stage.loops) <= 1 for stage in self._stages)

    def compute(self) -> list[Array]:
        """Computes the outputs, one array of one number per row for each."""
        for stage in self._stages:
            for node in stage.before:
                inputs = (self._array(x) for x in node.inputs)
                self._values[node] = node.emit(*inputs) if node.emit else node.value
            for loop in stage.loops:
                if len(loop.nodes) < _FEW_NODES * len(loop.results):
                    self._compute_apart(loop.nodes)
                else:
                    self._compute(loop)
        return [self._over_rows(node) for node in self._outputs]

    def _over_rows(self, node: Node) -> Array:
        """Returns one number per row."""
        array = self._array(node)
        return array if node.varying else lax.broadcast(array, (self._rows,))

    def _array(self, node: Node) -> Any:
        """Returns a value as an array; those of calls are lists of them."""
        value = self._values[node]
        return jnp.asarray(value, node.dtype) if node.is_constant else value

    def _compute_apart(self, nodes: Sequence[Node]) -> None:
        """Leaves nodes to XLA, which fuses them with what uses them."""
        for node in nodes:
            inputs = (_for_user(self._over_rows(x), x, node) for x in node.inputs)
            self._values[node] = node.emit(*inputs)

    def _compute(self, loop: "_Loop") -> None:
        def one_row(numbers: Sequence[Any], row: Sequence[Any]) -> list[Any]:
            values = dict(zip([*loop.numbers, *loop.columns], [*numbers, *row], strict=True))
            look_up = lambda x: x.value if x.is_constant else values[x]
            for node in loop.nodes:
                inputs = (_for_user(look_up(x), x, node) for x in node.inputs)
                values[node] = node.emit(*inputs)
            return [values[node] for node in loop.results]

        columns, numbers = ([self._values[x] for x in y] for y in (loop.columns, loop.numbers))
        dtypes = [node.dtype for node in loop.results]
        results = loop_over_rows(one_row, numbers, columns, self._rows, dtypes)
        self._values.update(zip(loop.results, results, strict=True))


def _for_user(value: Any, node: Node, user: Node) -> Any:
    """Returns the value of a node as one of its users has to take it."""
    return shielded(value) if node.operation == user.operation == "div" else value


class _Loop(NamedTuple):
    """Elementwise nodes, the nodes that these read, and those of them that others need."""

    nodes: Sequence[Node]
    columns: Sequence[Node]
    numbers: Sequence[Node]
    results: Sequence[Node]


class _Stage(NamedTuple):
    """Loops, and what they need before: calls, and what is the same for all rows."""

    before: Sequence[Node]
    loops: Sequence[_Loop]


class _Users:
    """The users of nodes: other nodes, and what the outputs are for."""

    def __init__(self, order: Sequence[Node], outputs: set[Node]):
        self._counts = collections.Counter(x for node in order for x in node.inputs)
        self._counts.update(outputs)

    def results(self, nodes: Sequence[Node]) -> list[Node]:
        """Returns those nodes that others need."""
        within = collections.Counter(x for node in nodes for x in node.inputs)
        return [node for node in nodes if self._counts[node] > within[node]]

    def longest_loop(self, nodes: Sequence[Node]) -> int:
        """Returns how many of the nodes, from the first on, LLVM vectorises as one loop."""
        longest, count = 1, OperandCount()
        left: dict[Node, int] = {}
        read: set[Node] = set()
        for length, node in enumerate(nodes[:_MOST_NODES], start=1):
            total = count.change(self._changes(node, left, read))
            if total <= _MOST_OPERANDS:
                longest = length
            elif total > 2 * _MOST_OPERANDS:
                break
        return longest

    def _changes(
        self, node: Node, left: dict[Node, int], read: set[Node]
    ) -> list[tuple[Any, int, int]]:
        """Adds a node to a loop: how many users its results have `left`, and what it has `read`."""
        changes = [(node.dtype, RESULT, 1)]
        for x in node.inputs:
            if x in left:
                left[x] -= 1
                changes.append((x.dtype, RESULT, -(not left[x])))
            elif x not in read and not x.is_constant:
                read.add(x)
                changes.append((x.dtype, COLUMN if x.varying else NUMBER, 1))
        left[node] = self._counts[node]
        return changes


def _split(order: Sequence[Node], outputs: set[Node]) -> list[_Stage]:
    """Splits nodes into stages, each with the calls that only need those before it."""
    level: dict[Node, int] = {}
    levels: list[list[Node]] = []
    for node in order:
        own = int(node.operation == "call" and node.varying)
        level[node] = own + max((level[x] for x in node.inputs), default=0)
        levels.extend([] for _ in range(level[node] + 1 - len(levels)))
        levels[level[node]].append(node)
    users = _Users(order, outputs)
    return [_stage(nodes, users) for nodes in levels]


def _stage(nodes: Sequence[Node], users: _Users) -> _Stage:
    within = [node for node in nodes if _is_elementwise(node)]
    before = [node for node in nodes if not _is_elementwise(node)]
    loops = []
    while within:
        length = users.longest_loop(within)
        loops.append(_loop(within[:length], users))
        within = within[length:]
    return _Stage(before, loops)


def _is_elementwise(node: Node) -> bool:
    return node.emit is not None and node.varying and node.operation not in ("call", "result")


def _loop(nodes: Sequence[Node], users: _Users) -> _Loop:
    within = set(nodes)
    read = dict.fromkeys(x for node in nodes for x in node.inputs if x not in within)
    columns = [x for x in read if x.varying]
    numbers = [x for x in read if not x.varying and not x.is_constant]
    return _Loop(nodes, columns, numbers, users.results(nodes))
