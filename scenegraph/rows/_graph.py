"""The intermediate representation: a graph of the scalars that every row computes.

Constant folding and common subexpression elimination happen while the graph is built.
"""

import dataclasses
from collections.abc import Callable, Container, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from ._constants import evaluate
from ._operands import Element, NotNative
from ._simplify import simplify


# LLVM's time grows faster than a function: half a second for 4,000 expressions, several for 20,000.
# Beyond the limit rows are mapped by JAX, whose compiler takes ten times as long (41,000: 73 s, not
# 12), and whose programs a hundred times.
_MOST = 80_000
# Of which `f(a, b)` is `f(b, a)`, bit for bit.
_COMMUTATIVE = {"add", "add_any", "mul"}


@dataclasses.dataclass(eq=False, slots=True)
class Node:
    """A scalar: one value per row if it is `varying`, one for all rows if it is uniform.

    Most nodes are elementwise primitives of JAX with their `params`. Others:

    - `"input"` and `"constant"` have a `value`;
    - `"look_up"` reads numbers of a table: several, so that `"result"`s pick them;
    - `"any_in_packet"` is true if its input is in any row of the vector;
    - `"loop"` and `"branch"` have a `Loop` or a `Branch` as their `value`; `"result"`s pick from
      them, too; a `"variable"` is a number that a loop changes.
    """

    operation: str
    inputs: tuple["Node", ...]
    dtype: Any
    varying: bool
    value: Any = None
    params: Any = None
    depth: int = 0  # of the innermost loop whose variables it needs
    early: bool = False  # known before the first row: neither of a row nor of a loop or a branch

    @property
    def is_constant(self) -> bool:
        """True if the value is known at compile time."""
        return isinstance(self.value, np.generic)


class Loop(NamedTuple):
    """A loop: while its condition holds, its variables become the next ones."""

    variables: list[Node]
    condition: Node
    following: list[Node]


class Branch(NamedTuple):
    """Cases, of which an index chooses one: each the nodes of its results."""

    cases: list[list[Node]]


class Graph:
    """A builder of nodes, which makes every expression once."""

    def __init__(self):
        self._constants: dict[Any, Node] = {}
        self._expressions: dict[Any, Node] = {}

    @property
    def size(self) -> int:
        """The number of expressions so far."""
        return len(self._expressions)

    def constant(self, number: Any, dtype: Any) -> Node:
        """Returns the node of a number that is known at compile time."""
        number = np.asarray(number, dtype)[()]
        key = number.tobytes(), number.dtype
        node = Node("constant", (), number.dtype, False, number, early=True)
        return self._constants.setdefault(key, node)

    def input(self, value: Element, *, varying: bool) -> Node:
        """Returns the node of a number of an operand."""
        return Node("input", (), value.dtype, varying, value, early=not varying)

    def apply(
        self,
        primitive: Any,
        inputs: Sequence[Node],
        params: dict,
        dtype: Any,
        key: tuple | None = None,
    ) -> Node:
        """Returns the node of an elementwise JAX primitive: simplified, folded or shared.

        `key` is that of the parameters, if it is known.
        """
        simple = simplify(primitive.name, inputs, dtype)
        if simple is not None:
            return simple
        if all(node.is_constant for node in inputs):
            result = jax.ShapeDtypeStruct((), dtype)
            [number] = evaluate(primitive, [x.value for x in inputs], params, [result])
            return self.constant(number, dtype)
        # f(a, b) and f(b, a) are one expression where they are equal.
        operands = map(id, inputs)
        ordered = sorted(operands) if primitive.name in _COMMUTATIVE else operands
        whole = primitive, tuple(ordered), hashable(params) if key is None else key
        return self._shared(whole, lambda: make_node(primitive.name, inputs, dtype, params=params))

    def look_up(self, place: Node, operand: int, stride: int, columns: range, dtype: Any) -> list:
        """Returns numbers of a row of a table, whose operand is given by its number."""
        params = {"operand": operand, "stride": stride, "columns": columns}
        key = "look_up", id(place), hashable(params)
        whole = self._shared(key, lambda: make_node("look_up", [place], dtype, params=params))
        return self.results(whole, [dtype] * len(columns), [place.varying] * len(columns))

    def any_in_packet(self, flag: Node) -> Node:
        """Returns the node of whether a flag is set in any row of a vector."""
        if not flag.varying:
            return flag
        node = self._shared(
            ("any_in_packet", id(flag)), lambda: make_node("any_in_packet", [flag], flag.dtype)
        )
        node.varying = False
        return node

    def results(self, whole: Node, dtypes: Sequence[Any], varying: Sequence[bool]) -> list[Node]:
        """Returns the nodes of what one node computes."""

        def make(k: int) -> Node:
            node = make_node("result", [whole], dtypes[k], params={"place": k})
            node.varying = varying[k]
            return node

        return [
            self._shared(("result", id(whole), k), lambda k=k: make(k)) for k in range(len(dtypes))
        ]

    def _shared(self, key: Any, make: Callable[[], Node]) -> Node:
        if key not in self._expressions:
            if self.size >= _MOST:
                raise NotNative(f"more than {_MOST} expressions")
            self._expressions[key] = make()
        return self._expressions[key]


# Nodes that are computed where they stand.
_STAY = "loop", "branch"


def make_node(operation: str, inputs: Sequence[Node], dtype: Any, **others: Any) -> Node:
    """Returns a new node, which varies if any of its inputs does."""
    varying, early, depth = False, operation not in _STAY, 0
    for x in inputs:
        varying, early = varying or x.varying, early and x.early
        depth = max(depth, x.depth)
    return Node(operation, tuple(inputs), dtype, varying, **others, depth=depth, early=early)


def topological_order(
    outputs: Sequence[Node],
    *,
    within: bool = False,
    known: Container[Node] = (),
) -> list[Node]:
    """Returns the nodes that the outputs need, each after its inputs, but for constants.

    What the cases of branches need is among them if it is asked for `within`; what only `known`
    nodes need is not.
    """
    # Depth first, by a stack of its own: graphs are deeper than Python's recursion goes.
    order: dict[Node, None] = {}
    stack = [(node, False) for node in reversed(outputs)]
    while stack:
        node, expanded = stack.pop()
        if expanded:
            order[node] = None
        elif not (node in order or node in known or isinstance(node.value, np.generic)):
            stack.append((node, True))
            inputs = inputs_within(node) if within else node.inputs
            stack.extend((x, False) for x in reversed(inputs) if x not in order)
    return list(order)


def every_node(outputs: Sequence[Node]) -> list[Node]:
    """Returns all nodes that outputs need, those of loops and branches among them."""
    found: dict[Node, None] = {}
    stack = list(outputs)
    while stack:
        node = stack.pop()
        if node in found:
            continue
        found[node] = None
        stack += inputs_within(node)
        if isinstance(node.value, Loop):
            stack += [node.value.condition, *node.value.following]
    return list(found)


def inputs_within(node: Node) -> Sequence[Node]:
    """Returns the inputs of a node; those of a branch with what its cases need."""
    if isinstance(node.value, Branch):
        return [*node.inputs, *(x for case in node.value.cases for x in case)]
    return node.inputs


def hashable(params: dict) -> tuple:
    """Returns the parameters of a primitive as a key."""
    return tuple(sorted((name, str(value)) for name, value in params.items())) if params else ()


def array_of(nodes: Sequence[Node], shape: Sequence[int]) -> np.ndarray:
    """Returns nodes as an array of a shape."""
    array = np.empty(len(nodes), object)
    array[:] = nodes
    return array.reshape(shape)
