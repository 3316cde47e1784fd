"""The intermediate representation: a graph of the scalars that every row computes.

Constant folding and common subexpression elimination happen while the graph is built.
"""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

from .._typing import Array
from ._constants import evaluate
from ._simplify import simplify


# Of which `f(a, b)` is `f(b, a)`, bit for bit.
_COMMUTATIVE = {"add", "add_any", "mul"}


@dataclasses.dataclass(eq=False, slots=True)
class Node:
    """A scalar: one value per row if it is `varying`, one for all rows if it is uniform.

    `emit` maps the arrays of the `inputs` to the array of this scalar; graph inputs and constants
    have a `value` instead.
    """

    operation: str
    inputs: tuple["Node", ...]
    emit: Any  # a function; `None` for inputs and constants
    dtype: Any
    varying: bool
    value: Any = None
    params: Any = None  # of a primitive

    @property
    def is_constant(self) -> bool:
        """True if the value is known at compile time."""
        return isinstance(self.value, np.generic)


class Graph:
    """A builder of nodes, which makes every expression once."""

    def __init__(self):
        self._constants: dict[Any, Node] = {}
        self._expressions: dict[Any, Node] = {}

    def constant(self, number: Any, dtype: Any) -> Node:
        """Returns the node of a number that is known at compile time."""
        number = np.asarray(number, dtype)[()]
        key = number.tobytes(), number.dtype
        node = Node("constant", (), None, number.dtype, False, number)
        return self._constants.setdefault(key, node)

    def input(self, value: Array, *, varying: bool) -> Node:
        """Returns the node of an array of one number per row, or of a single number."""
        return Node("input", (), None, value.dtype, varying, value)

    def apply(self, primitive: Any, inputs: Sequence[Node], params: dict, dtype: Any) -> Node:
        """Returns the node of an elementwise JAX primitive: simplified, folded or shared."""
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
        key = primitive, tuple(ordered), hashable(params)
        if key not in self._expressions:
            emit = lambda *values: primitive.bind(*values, **params)
            node = make_node(primitive.name, inputs, emit, dtype)
            node.params = params
            self._expressions[key] = node
        return self._expressions[key]

    def call(self, inputs: Sequence[Node], emit: Callable, dtypes: Sequence[Any]) -> list[Node]:
        """Returns the nodes of an operation that computes several scalars at once."""
        whole = make_node("call", inputs, emit, None)
        picks = [lambda values, i=i: values[i] for i in range(len(dtypes))]
        return [
            make_node("result", [whole], pick, dtype)
            for pick, dtype in zip(picks, dtypes, strict=True)
        ]


def make_node(operation: str, inputs: Sequence[Node], emit: Callable, dtype: Any) -> Node:
    """Returns a new node, which varies if any of its inputs does."""
    return Node(operation, tuple(inputs), emit, dtype, any(node.varying for node in inputs))


def topological_order(outputs: Sequence[Node]) -> list[Node]:
    """Returns the nodes that the outputs need, each after its inputs."""
    # Depth first, by a stack of its own: graphs are deeper than Python's recursion goes.
    order: dict[Node, None] = {}
    stack = [(node, False) for node in reversed(outputs)]
    while stack:
        node, expanded = stack.pop()
        if expanded:
            order[node] = None
        elif node not in order:
            stack.append((node, True))
            stack.extend((x, False) for x in reversed(node.inputs) if x not in order)
    return list(order)


def hashable(params: dict) -> tuple:
    """Returns the parameters of a primitive as a key."""
    return tuple(sorted((name, str(value)) for name, value in params.items()))
