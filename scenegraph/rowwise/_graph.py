"""Scalar expressions that every row of a batch has: simplified, shared, and then computed."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from .._typing import Array


# What one element costs beside an addition, roughly.
_PRICES = {
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
# XLA computes an expression again for everyone who uses it. One that would cost more than this
# beyond the first time is kept. Measured: 4 and 40 are both slower.
_WORTH_KEEPING = 15


@dataclasses.dataclass(eq=False, slots=True)
class Node:
    """A number for every row, or one for all of them.

    **Arguments:**

    - `inputs`, `make`: what it is computed from, and how; nothing for what is given.
    - `dtype`: of the number.
    - `rowed`: whether rows differ.
    - `value`: an array, once there is one; a numpy scalar for what is known now.
    - `price`: of computing it from what is kept.
    """

    inputs: tuple["Node", ...]
    make: Callable[..., Any] | None
    dtype: Any
    rowed: bool
    value: Any = None
    price: int = 0

    @property
    def known(self) -> bool:
        """Whether its value is known before anything runs."""
        return isinstance(self.value, np.generic)


class Graph:
    """Expressions under way. Equal ones are the same node.

    **Arguments:**

    - `rows`: how many rows there are.
    """

    def __init__(self, rows: int):
        self.rows = rows
        self._known: dict[Any, Node] = {}
        self._made: dict[Any, Node] = {}
        self._order: list[Node] = []

    def constant(self, number: Any, dtype: Any) -> Node:
        """A number that is known now.

        **Arguments:**

        - `number`, `dtype`: it.

        **Returns:**

        Its node.
        """
        number = np.asarray(number, dtype)[()]
        key = number.tobytes(), number.dtype
        return self._known.setdefault(key, Node((), None, number.dtype, False, number))

    def given(self, value: Array, *, rowed: bool) -> Node:
        """An array of one number a row, or of one number.

        **Arguments:**

        - `value`: the array.
        - `rowed`: which of both it is. Keyword only argument.

        **Returns:**

        Its node.
        """
        return Node((), None, value.dtype, rowed, value)

    def apply(self, primitive: Any, inputs: Sequence[Node], params: dict, dtype: Any) -> Node:
        """An elementwise operation of JAX.

        **Arguments:**

        - `primitive`, `params`: the operation.
        - `inputs`: its operands.
        - `dtype`: of the result.

        **Returns:**

        The result's node, simplified where zeros and ones make it simple: a product with a zero
        is zero.
        """
        simple = _simplified(self, primitive.name, inputs, params, dtype)
        if simple is not None:
            return simple
        if all(node.known for node in inputs):
            return self.constant(_compute(primitive, inputs, params), dtype)
        key = primitive, tuple(id(node) for node in inputs), _text(params)
        if key not in self._made:
            make = lambda *values: primitive.bind(*values, **params)
            self._made[key] = self._add(inputs, make, dtype, _PRICES.get(primitive.name, 1))
        return self._made[key]

    def combine(self, inputs: Sequence[Node], make: Callable, dtypes: Sequence[Any]) -> list[Node]:
        """Several numbers a row that are computed together.

        **Arguments:**

        - `inputs`: from which.
        - `make`: how: a function from arrays to arrays, all with one number a row.
        - `dtypes`: of the results.

        **Returns:**

        Their nodes.
        """
        whole = self._add(inputs, make, None, 0, rowed=True)
        picks = [lambda values, place=place: values[place] for place in range(len(dtypes))]
        return [
            self._add([whole], pick, dtype, 0, rowed=True)
            for pick, dtype in zip(picks, dtypes, strict=True)
        ]

    def _add(
        self, inputs: Sequence[Node], make: Callable, dtype: Any, price: int, rowed: bool = False
    ) -> Node:
        rowed = rowed or any(node.rowed for node in inputs)
        self._order.append(Node(tuple(inputs), make, dtype, rowed, None, price))
        return self._order[-1]

    def compute(self, wanted: Sequence[Node]) -> list[Array]:
        """Computes what is wanted, and nothing that is not.

        **Arguments:**

        - `wanted`: nodes.

        **Returns:**

        Their values, one number a row.
        """
        uses = _count_uses(wanted)
        one = _opaque_one([node for node in uses if not node.inputs and node.rowed])
        finals = set(map(id, wanted))
        spread = _Spread(self.rows)
        for node in [*(node for node in uses if not node.inputs), *self._order]:
            if node not in uses:
                continue
            if node.make is not None:
                node.value = node.make(*spread.alike(node))
                node.price = node.price + sum(x.price for x in node.inputs) if node.rowed else 0
            again = (node.price or not node.inputs) * (uses[node] - 1)
            if (id(node) in finals or again > _WORTH_KEEPING) and _can_be_kept(node):
                node.value, node.price = _kept(node.value, one), 0
        return [spread.over_rows(node) for node in wanted]


class _Spread:
    """Numbers that all rows have in common, as one a row where that is needed."""

    def __init__(self, rows: int):
        self._rows = rows
        self._spread: dict[int, Array] = {}

    def over_rows(self, node: Node) -> Any:
        if node.rowed:
            return node.value
        if id(node) not in self._spread:
            value = jnp.asarray(node.value, node.dtype)
            self._spread[id(node)] = lax.broadcast(value, (self._rows,))
        return self._spread[id(node)]

    def alike(self, node: Node) -> list[Any]:
        """The operands of a node, of one shape."""
        if node.rowed:
            return [self.over_rows(x) for x in node.inputs]
        return [jnp.asarray(x.value, x.dtype) for x in node.inputs]


def _count_uses(wanted: Sequence[Node]) -> dict[Node, int]:
    uses: dict[Node, int] = {}
    waiting = list(wanted)
    while waiting:
        node = waiting.pop()
        uses[node] = uses.get(node, 0) + 1
        if uses[node] == 1:
            waiting.extend(node.inputs)
    return uses


def _can_be_kept(node: Node) -> bool:
    return node.rowed and node.dtype is not None and jnp.issubdtype(node.dtype, jnp.floating)


def _opaque_one(given: Sequence[Node]) -> Any:
    """The number one, in a way that a compiler cannot see."""
    first = given[0].value[0].astype(jnp.float32)
    return lax.select(first != first, jnp.float32(1 + 2**-23), jnp.float32(1))


def _kept(value: Array, one: Array) -> Array:
    """A value that XLA writes to memory instead of computing it again for everyone who uses it.

    That it does with divisions; this one changes nothing. There is no other way to tell it.
    """
    return lax.div(value, lax.broadcast(one.astype(value.dtype), value.shape))


def _compute(primitive: Any, inputs: Sequence[Node], params: dict) -> Any:
    with jax.ensure_compile_time_eval():
        return np.asarray(primitive.bind(*(jnp.asarray(x.value) for x in inputs), **params))


def _text(params: dict) -> tuple:
    return tuple(sorted((name, str(value)) for name, value in params.items()))


def _is(node: Node, number: float) -> bool:
    return node.known and node.value == number


def _simplified(graph: Graph, name: str, x: Sequence[Node], params: dict, dtype: Any) -> Any:
    """What an operation comes to where no computation is needed, or `None`."""
    rule = _SIMPLER.get(name)
    return None if rule is None else rule(graph, x, params, dtype)


def _product(graph: Graph, x: Sequence[Node], params: dict, dtype: Any) -> Node | None:
    del graph, params, dtype
    zero = next((node for node in x if _is(node, 0)), None)
    return zero or (x[1] if _is(x[0], 1) else x[0] if _is(x[1], 1) else None)


def _sum(graph: Graph, x: Sequence[Node], params: dict, dtype: Any) -> Node | None:
    del graph, params, dtype
    return x[1] if _is(x[0], 0) else x[0] if _is(x[1], 0) else None


def _difference(graph: Graph, x: Sequence[Node], params: dict, dtype: Any) -> Node | None:
    if _is(x[0], 0):
        return graph.apply(lax.neg_p, x[1:], params, dtype)
    return x[0] if _is(x[1], 0) else None


def _quotient(graph: Graph, x: Sequence[Node], params: dict, dtype: Any) -> Node | None:
    """A product with the reciprocal, which all quotients by the same number share."""
    if _is(x[0], 0) or _is(x[1], 1):
        return x[0]
    if x[0].known or not x[1].rowed or not jnp.issubdtype(dtype, jnp.floating):
        return None
    reciprocal = graph.apply(lax.div_p, [graph.constant(1, dtype), x[1]], params, dtype)
    return graph.apply(lax.mul_p, [x[0], reciprocal], {}, dtype)


def _selected(graph: Graph, x: Sequence[Node], params: dict, dtype: Any) -> Node | None:
    del graph, params, dtype
    if x[0].known:
        return x[1 + int(x[0].value)]
    return x[1] if all(node is x[1] for node in x[2:]) else None


def _converted(graph: Graph, x: Sequence[Node], params: dict, dtype: Any) -> Node | None:
    del graph, params
    return x[0] if x[0].dtype == dtype else None


_SIMPLER: dict[str, Callable] = {
    "mul": _product,
    "add": _sum,
    "add_any": _sum,
    "sub": _difference,
    "div": _quotient,
    "select_n": _selected,
    "convert_element_type": _converted,
    "copy": _converted,
}
