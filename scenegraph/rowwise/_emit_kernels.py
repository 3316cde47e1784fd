"""Code generation for many rows: nodes as JAX operations on arrays of one number per row.

XLA makes kernels of them, and divides every kernel between cores. It decides by itself which values
it stores and which it computes again for each of their users. On CPUs it stores too little. It
stores quotients, because divisions are expensive, so what is worth storing is divided by a one that
XLA cannot see.
"""

import collections
from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
from jax import lax

from .._typing import Array
from ._graph import Node, topological_order


# The cost of an operation on one number, in additions, roughly.
_COSTS = {
    "call": 0,
    "result": 0,
    "input": 0,
    "div": 4,
    "sqrt": 4,
    "rsqrt": 4,
    "rem": 6,
    "exp": 10,
    "log": 10,
    "pow": 20,
    "sin": 20,
    "cos": 20,
    "tan": 20,
    "atan2": 30,
    "asin": 30,
}
# A value is stored if computing it again for all its users would cost more than this. Measured for
# pictures of surfaces: gradients take as long with 7, and 5 % longer with 15.
_WORTH_STORING = 10


def emit_kernels(outputs: Sequence[Node], rows: int) -> list[Array]:
    """Computes the outputs, one array of one number per row for each."""
    order = topological_order(outputs)
    uses = collections.Counter([*outputs, *(x for node in order for x in node.inputs)])
    emitter = _Emitter(order, rows)
    # XLA computes one number at a time in whatever it fuses with a call, such as a look-up.
    apart = set(outputs).union(*(node.inputs for node in order if node.operation == "call"))
    for node in order:
        emitter.compute(node)
        # What it costs to compute it again for every user but one.
        again = max(emitter.costs[node], 1) * (uses[node] - 1)
        if node in apart or node.operation == "result" or again > _WORTH_STORING:
            emitter.store(node)
    return [emitter.over_rows(node) for node in outputs]


class _Emitter:
    """The values of nodes, and the costs of their expressions down to values that are stored."""

    def __init__(self, order: Sequence[Node], rows: int):
        self.costs: dict[Node, int] = {}
        self._values: dict[Node, Any] = {}
        self._broadcast: dict[Node, Array] = {}
        self._quotients: set[Node] = set()
        self._one, self._rows = _opaque_one(order), rows

    def compute(self, node: Node) -> None:
        """Computes a node from the values of its inputs."""
        if node.operation == "div":
            self._quotients.add(node)
        self._values[node] = node.emit(*self._operands(node)) if node.emit else node.value
        cost = _COSTS.get(node.operation, 1) + sum(self.costs[x] for x in node.inputs)
        self.costs[node] = cost if node.varying else 0

    def store(self, node: Node) -> None:
        """Makes XLA store the value of a node, if it is a floating-point number per row."""
        if self._one is None or not node.varying or not _is_floating(node):
            return
        value = self._shielded(node) if node in self._quotients else self._values[node]
        one = lax.broadcast(self._one.astype(value.dtype), value.shape)
        self._values[node], self.costs[node] = lax.div(value, one), 0
        self._quotients.add(node)

    def over_rows(self, node: Node) -> Any:
        """Returns one number per row."""
        if node.varying:
            return self._values[node]
        if node not in self._broadcast:
            value = jnp.asarray(self._values[node], node.dtype)
            self._broadcast[node] = lax.broadcast(value, (self._rows,))
        return self._broadcast[node]

    def _operands(self, node: Node) -> list[Any]:
        # The operands of a call keep their shapes; those of other operations have the same shape.
        if not node.varying or node.operation in ("call", "result"):
            constant = lambda x: jnp.asarray(x.value, x.dtype) if x.is_constant else self._values[x]
            return [constant(x) for x in node.inputs]
        shielded = self._quotients if node.operation == "div" else ()
        return [self._shielded(x) if x in shielded else self.over_rows(x) for x in node.inputs]

    def _shielded(self, node: Node) -> Array:
        return shielded(self.over_rows(node))


def shielded(quotient: Any) -> Any:
    """Returns a quotient that XLA divides as it is.

    It makes (a / b) / c into a / (b c), which is another number where b c is too large, and a /
    (b / c) into (a c) / b. It does not look through min(max(x, -inf), inf) = x.
    """
    if not jnp.issubdtype(quotient.dtype, jnp.floating):
        return quotient
    infinity = jnp.asarray(jnp.inf, quotient.dtype)
    return lax.clamp(-infinity, quotient, infinity)


def _is_floating(node: Node) -> bool:
    return node.dtype is not None and jnp.issubdtype(node.dtype, jnp.floating)


def _opaque_one(order: Sequence[Node]) -> Any:
    """Returns the number one, made of an input so that XLA cannot know it; `None` without any."""
    inputs = [node for node in order if node.operation == "input"]
    numbers = [node for node in inputs if jnp.issubdtype(node.dtype, jnp.number)]
    if not numbers:
        return None
    # A number equals itself or, if it is NaN, does not.
    first = min(numbers, key=lambda node: not _is_floating(node))
    x = (first.value[0] if first.varying else first.value).astype(jnp.float32)
    one, two = jnp.float32(1), jnp.float32(2)
    return lax.select(x == x, one, lax.select(x != x, one, two))
