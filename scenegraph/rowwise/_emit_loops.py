"""Code generation for blocks of rows: the nodes of a graph as a few loops over rows.

Between calls on arrays, such as look-ups, all nodes are elementwise. A stage of them is one loop:
a kernel that computes all of its nodes, row after row. Large stages are cut into several.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import lax

from .._typing import Array
from ._emit_kernels import shielded
from ._graph import Node, topological_order
from ._row_loop import count_operands, loop_over_rows


# The most nodes and operands of a loop. Measured: LLVM vectorises loops with 112 operands, and
# none with 128; and loops of 3,000 nodes, but none of 3,700.
_MOST_NODES, _MOST_OPERANDS = 3000, 96
# Less than so many nodes for each result are left to XLA, which fuses them with what uses them.
_FEW_NODES = 3


def emit_loops(outputs: Sequence[Node], rows: int) -> list[Array]:
    """Computes the outputs, one array of one number per row for each."""
    order = topological_order(outputs)
    emitter = _Emitter(order, outputs, rows)
    for stage in _stages(order):
        emitter.compute_stage(stage)
    return [emitter.over_rows(node) for node in outputs]


def _stages(order: Sequence[Node]) -> list[list[Node]]:
    """Splits nodes into stages, each with the calls that only need those before it."""
    level: dict[Node, int] = {}
    stages: list[list[Node]] = []
    for node in order:
        own = int(node.operation == "call" and node.varying)
        level[node] = own + max((level[x] for x in node.inputs), default=0)
        stages.extend([] for _ in range(level[node] + 1 - len(stages)))
        stages[level[node]].append(node)
    return stages


class _Piece(NamedTuple):
    """Elementwise nodes, the nodes that these read, and those of them that others need."""

    nodes: Sequence[Node]
    columns: Sequence[Node]
    numbers: Sequence[Node]
    results: Sequence[Node]

    @property
    def fits(self) -> bool:
        """True if LLVM vectorises a loop of it."""
        types = ([node.dtype for node in some] for some in self[1:])
        return len(self.nodes) <= _MOST_NODES and count_operands(*types) <= _MOST_OPERANDS


class _Emitter:
    """The values of nodes: arrays over rows, or numbers where all rows agree."""

    def __init__(self, order: Sequence[Node], outputs: Sequence[Node], rows: int):
        self._rows, self._outputs = rows, set(outputs)
        self._values: dict[Node, Any] = {}
        self._users: dict[Node, set[Node]] = {node: set() for node in order}
        for node in order:
            for x in node.inputs:
                self._users[x].add(node)

    def compute_stage(self, nodes: Sequence[Node]) -> None:
        """Computes nodes whose calls only need what is known."""
        elementwise = []
        for node in nodes:
            if not node.emit:
                self._values[node] = node.value
            elif not node.varying or node.operation in ("call", "result"):
                self._values[node] = node.emit(*(self._array(x) for x in node.inputs))
            else:
                elementwise.append(node)
        if elementwise:
            self._compute(elementwise)

    def over_rows(self, node: Node) -> Array:
        """Returns one number per row."""
        array = self._array(node)
        return array if node.varying else lax.broadcast(array, (self._rows,))

    def _array(self, node: Node) -> Any:
        """Returns a value as an array; those of calls are lists of them."""
        value = self._values[node]
        return jnp.asarray(value, node.dtype) if node.is_constant else value

    def _compute(self, nodes: Sequence[Node]) -> None:
        """Computes elementwise nodes by as many loops as it takes."""
        piece = self._piece(nodes)
        if len(nodes) < _FEW_NODES * len(piece.results):
            for node in nodes:
                inputs = (_for_user(self.over_rows(x), x, node) for x in node.inputs)
                self._values[node] = node.emit(*inputs)
        elif piece.fits or len(nodes) == 1:
            self._loop(piece)
        else:
            half = len(nodes) // 2
            self._compute(nodes[:half])
            self._compute(nodes[half:])

    def _piece(self, nodes: Sequence[Node]) -> _Piece:
        within = set(nodes)
        read = dict.fromkeys(x for node in nodes for x in node.inputs if x not in within)
        columns = [x for x in read if x.varying]
        numbers = [x for x in read if not x.varying and not x.is_constant]
        needed = lambda node: node in self._outputs or not self._users[node] <= within
        return _Piece(nodes, columns, numbers, [node for node in nodes if needed(node)])

    def _loop(self, piece: _Piece) -> None:
        def one_row(numbers: Sequence[Any], row: Sequence[Any]) -> list[Any]:
            values = dict(zip([*piece.numbers, *piece.columns], [*numbers, *row], strict=True))
            look_up = lambda x: x.value if x.is_constant else values[x]
            for node in piece.nodes:
                inputs = (_for_user(look_up(x), x, node) for x in node.inputs)
                values[node] = node.emit(*inputs)
            return [values[node] for node in piece.results]

        columns, numbers = ([self._values[x] for x in y] for y in (piece.columns, piece.numbers))
        dtypes = [node.dtype for node in piece.results]
        results = loop_over_rows(one_row, numbers, columns, self._rows, dtypes)
        self._values.update(zip(piece.results, results, strict=True))


def _for_user(value: Any, node: Node, user: Node) -> Any:
    """Returns the value of a node as one of its users has to take it."""
    return shielded(value) if node.operation == user.operation == "div" else value
