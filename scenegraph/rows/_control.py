"""Loops and branches of a row: `while`, `scan` and `cond` as nodes with nodes within."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
from jax import lax

from ._flow import varying_loop, varying_scan
from ._graph import array_of, Branch, Graph, Loop, make_node, Node, topological_order
from ._look_ups import look_up_row
from ._operands import NotNative
from ._rules import reduce_nodes
from ._values import is_zero, NodeArray, TablePart, TableRow, TableSum, Term


# Loops of a known length with no more expressions than so many in all are unrolled.
_UNROLLED = 256
# Loops over arrays of a row, or with results of every turn, are always unrolled, up to so many.
_MOST_UNROLLED = 10_000
# Cases of fewer expressions are both computed.
_CHEAP = 16

_INT = np.dtype(np.int32)


def _while(scalariser: Any, equation: Any, values: list[Any]) -> list[Any]:
    params = equation.params
    first, second = params["cond_nconsts"], params["body_nconsts"]
    test_with, turn_with = values[:first], values[first : first + second]
    starts = _arrays(scalariser, values[first + second :], equation.invars[first + second :])

    def turn(variables: list[Any]) -> tuple[Node, list[Any]]:
        [test] = scalariser.run_closed(params["cond_jaxpr"], [*test_with, *variables])
        following = scalariser.run_closed(params["body_jaxpr"], [*turn_with, *variables])
        [aval] = params["cond_jaxpr"].out_avals
        tests = scalariser.as_nodes(test, aval).nodes
        if not tests.ndim:
            return tests.item(), following
        return _turn_of_some(scalariser, tests, following, variables)

    flags = varying_loop(equation, list(map(_is_varying, values)))
    stays = _passed_on(params["body_jaxpr"], second)
    return _loop(scalariser, starts, turn, [x.aval for x in equation.outvars], (flags, stays))


def _is_varying(value: Any) -> bool:
    if isinstance(value, NodeArray):
        return value.varying
    return value.place.varying if isinstance(value, TableRow) else isinstance(value, TableSum)


def _passed_on(closed: Any, consts: int) -> list[bool]:
    """Returns which variables a turn leaves as they are."""
    pairs = zip(closed.jaxpr.invars[consts:], closed.jaxpr.outvars, strict=False)
    return [before is after for before, after in pairs]


def _turn_of_some(
    scalariser: Any, tests: np.ndarray, following: list[Any], variables: list[Any]
) -> tuple[Node, list[Any]]:
    """Returns a turn of several loops that `jax.vmap` made one: those that are done stay."""
    graph = scalariser.graph
    pick = np.vectorize(
        lambda which, x, y: graph.apply(lax.select_n_p, [which, x, y], {}, x.dtype),
        otypes=[object],
    )
    after = []
    for value, old in zip(following, variables, strict=True):
        aligned = tests.reshape(*tests.shape, *(1,) * (old.nodes.ndim - tests.ndim))
        new = scalariser.as_nodes(value, jax.ShapeDtypeStruct(old.nodes.shape, old.dtype))
        nodes = pick(aligned, old.nodes, new.nodes) if old.nodes.size else old.nodes
        after.append(NodeArray(nodes, old.dtype))
    return reduce_nodes(graph, lax.or_p, tests, range(tests.ndim)).item(), after


def _arrays(scalariser: Any, values: Sequence[Any], variables: Sequence[Any]) -> list[NodeArray]:
    return [scalariser.as_nodes(value, x.aval) for value, x in zip(values, variables, strict=True)]


def _loop(
    scalariser: Any,
    starts: list[NodeArray],
    turn: Callable,
    avals: Sequence[Any],
    guess: tuple[list[bool], list[bool]],
) -> list[NodeArray]:
    """Returns the variables after the last turn: `turn` maps them to a condition and the next.

    The guess is which may differ between rows, and which stay as they are.
    """
    first = [node for x in starts for node in x.nodes.reshape(-1)]
    dtypes = [x.dtype for x in starts for _ in range(x.nodes.size)]
    of_numbers = lambda flags: [
        flag for x, flag in zip(starts, flags, strict=True) for _ in range(x.nodes.size)
    ]
    varying, changing = of_numbers(guess[0]), [not stays for stays in of_numbers(guess[1])]
    varying = [
        x or (not changes and start.varying)
        for x, changes, start in zip(varying, changing, first, strict=True)
    ]
    # Whether the guess holds for every number is found out by trying.
    scalariser.depth += 1
    while True:
        variables = [
            Node("variable", (), dtype, varies, depth=scalariser.depth) if changes else start
            for start, dtype, varies, changes in zip(first, dtypes, varying, changing, strict=True)
        ]
        before = scalariser.graph.size
        condition, following = turn(_as_arrays(variables, starts))
        pairs = zip(following, avals, strict=True)
        after = [x for v, aval in pairs for x in scalariser.as_nodes(v, aval).nodes.reshape(-1)]
        now = [
            x.varying or y.varying or (condition.varying and changes)
            for x, y, changes in zip(variables, after, changing, strict=True)
        ]
        still = [x is not y for x, y in zip(variables, after, strict=True)]
        differs = any(x and not y for x, y in zip(now, varying, strict=True))
        # What turns out to stay is known before the loop; to try again is worth it for small ones.
        is_small = scalariser.graph.size - before <= _UNROLLED
        if not differs and (still == changing or not is_small):
            break
        varying = [x or y for x, y in zip(now, varying, strict=True)]
        changing = [a and b for a, b in zip(still, changing, strict=True)]
    scalariser.depth -= 1
    moving = [i for i, changes in enumerate(changing) if changes]
    if not moving:
        return starts
    loop = Loop([variables[i] for i in moving], condition, [after[i] for i in moving])
    node = _loop_node(loop, [first[i] for i in moving])
    results = scalariser.graph.results(
        node, [dtypes[i] for i in moving], [variables[i].varying for i in moving]
    )
    for i, result in zip(moving, results, strict=True):
        first[i] = result
    return _as_arrays(first, starts)


def _as_arrays(nodes: list[Node], like: list[NodeArray]) -> list[NodeArray]:
    arrays, rest = [], nodes
    for x in like:
        size = x.nodes.size
        arrays.append(NodeArray(array_of(rest[:size], x.nodes.shape), x.dtype))
        rest = rest[size:]
    return arrays


class _Above:
    """The nodes outside of a loop whose variables have a depth."""

    def __init__(self, depth: int):
        self._depth = depth

    def __contains__(self, node: Node) -> bool:
        return node.depth < self._depth


def _loop_node(loop: Loop, starts: list[Node]) -> Node:
    """Returns the node of a loop, whose inputs are what is known before its first turn."""
    depth = min((x.depth for x in loop.variables), default=0)
    is_outside = lambda x: x.depth < depth
    inside = topological_order([loop.condition, *loop.following], within=True, known=_Above(depth))
    near = [*(x for node in inside for x in node.inputs), loop.condition, *loop.following]
    needed = dict.fromkeys(x for x in near if is_outside(x) and not x.is_constant)
    return make_node("loop", [*starts, *needed], None, value=loop)


def _count_of_scan(equation: Any) -> tuple[int, int]:
    """Returns how many operands are constants, and how many variables: the others are slices."""
    # By their axes: how a version of JAX names the numbers differs.
    inner = getattr(equation.params["jaxpr"], "jaxpr", equation.params["jaxpr"])
    is_sliced = lambda x, y: x.aval.ndim > y.aval.ndim
    inputs = zip(equation.invars, inner.invars, strict=True)
    outputs = zip(equation.outvars, inner.outvars, strict=True)
    slices = sum(is_sliced(*pair) for pair in inputs)
    variables = sum(not is_sliced(*pair) for pair in outputs)
    return len(equation.invars) - variables - slices, variables


def _scan(scalariser: Any, equation: Any, values: list[Any]) -> list[Any]:
    params = equation.params
    consts, carried = _count_of_scan(equation)
    fixed, carry, xs = np.split(np.arange(len(values)), [consts, consts + carried])
    fixed = [values[i] for i in fixed]
    jaxpr, length = params["jaxpr"], params["length"]
    has_rows = any(isinstance(values[i], NodeArray | TableRow | TableSum) for i in xs)
    stacks = len(equation.outvars) > carried
    before = scalariser.graph.size
    state = [values[i] for i in carry]
    slices = [_Slices(scalariser, values[i], equation.invars[i].aval) for i in xs]
    if length == 0:
        return [
            *_arrays(scalariser, state, equation.invars[consts : consts + carried]),
            *(
                NodeArray(array_of([], x.aval.shape), x.aval.dtype)
                for x in equation.outvars[carried:]
            ),
        ]
    if not (stacks or has_rows) and length > 1:
        # A first turn, which is not used, says how large one is.
        scalariser.depth += 1
        now = _varied(scalariser, equation, state)
        scalariser.run_closed(jaxpr, [*fixed, *now, *(x.at(0) for x in slices)])
        scalariser.depth -= 1
        if (scalariser.graph.size - before) * length > _UNROLLED:
            return _scan_in_turns(scalariser, equation, fixed, state, slices)
    results = []
    for k in range(length):
        place = length - 1 - k if params["reverse"] else k
        after = scalariser.run_closed(jaxpr, [*fixed, *state, *(x.at(place) for x in slices)])
        state, rows = after[:carried], after[carried:]
        results.append(rows)
        if scalariser.graph.size - before > _MOST_UNROLLED:
            raise NotNative("a long scan")
    if params["reverse"]:
        results.reverse()
    return [*state, *_stacked(scalariser, results, equation.outvars[carried:])]


def _varied(scalariser: Any, equation: Any, state: list[Any]) -> list[NodeArray]:
    """Returns variables in the place of a state."""
    consts, _ = _count_of_scan(equation)
    arrays = _arrays(scalariser, state, equation.invars[consts : consts + len(state)])
    make = lambda dtype: Node("variable", (), dtype, True, depth=scalariser.depth)
    return [
        NodeArray(array_of([make(x.dtype) for _ in range(x.nodes.size)], x.nodes.shape), x.dtype)
        for x in arrays
    ]


def _stacked(scalariser: Any, results: list[Any], variables: Sequence[Any]) -> list[NodeArray]:
    stacks = []
    for rows, variable in zip(zip(*results, strict=True), variables, strict=True):
        one = np.zeros(variable.aval.shape[1:], variable.aval.dtype)
        nodes = [scalariser.as_nodes(row, one).nodes for row in rows]
        stacks.append(NodeArray(np.stack(nodes), variable.aval.dtype))
    return stacks


class _Slices:
    """An array of which a turn of a `scan` takes one row."""

    def __init__(self, scalariser: Any, value: Any, aval: Any):
        self.scalariser, self.value, self.aval = scalariser, value, aval

    def at(self, place: int) -> Any:
        """Returns the row of a turn that is unrolled."""
        if isinstance(self.value, NodeArray | TableRow | TableSum):
            nodes = self.scalariser.as_nodes(self.value, self.aval).nodes[place]
            return NodeArray(np.asarray(nodes, object), self.aval.dtype)
        return self.look_up(self.scalariser.graph.constant(place, _INT))

    def look_up(self, place: Node) -> NodeArray:
        """Returns the row of a turn of a loop."""
        return look_up_row(self.scalariser, self.value, self.aval, place)


def _scan_in_turns(
    scalariser: Any, equation: Any, fixed: list[Any], state: list[Any], slices: list[_Slices]
) -> list[Any]:
    """Loops over a `scan` that has no results but its last state."""
    params, graph = equation.params, scalariser.graph
    length, variables = params["length"], equation.invars[_count_of_scan(equation)[0] :]
    zero = NodeArray(array_of([graph.constant(0, _INT)], ()), _INT)
    starts = [zero, *_arrays(scalariser, state, variables[: len(state)])]

    def turn(now: list[NodeArray]) -> tuple[Node, list[Any]]:
        count = now[0].nodes.item()
        apply = lambda primitive, x, y, kind: graph.apply(primitive, [x, y], {}, kind)
        last = graph.constant(length - 1, _INT)
        place = apply(lax.sub_p, last, count, _INT) if params["reverse"] else count
        rows = [x.look_up(place) for x in slices]
        after = scalariser.run_closed(params["jaxpr"], [*fixed, *now[1:], *rows])
        more = apply(lax.lt_p, count, graph.constant(length, _INT), np.dtype(bool))
        following = apply(lax.add_p, count, graph.constant(1, _INT), _INT)
        return more, [NodeArray(array_of([following], ()), _INT), *after]

    avals = [np.zeros((), _INT), *(x.aval for x in equation.outvars)]
    varies = [_is_varying(x) for x in (*fixed, *state)]
    varies += [_is_varying(x.value) for x in slices]
    stays = [False, *_passed_on(params["jaxpr"], len(fixed))[: len(state)]]
    flags = [False, *varying_scan(params["jaxpr"], varies, len(fixed), len(state))]
    return _loop(scalariser, starts, turn, avals, (flags, stays))[1:]


def _cond(scalariser: Any, equation: Any, values: list[Any]) -> list[Any]:
    index, *operands = values
    graph, cases = scalariser.graph, equation.params["branches"]
    chosen = scalariser.as_nodes(index, equation.invars[0].aval).nodes.item()
    if chosen.is_constant:
        which = min(max(int(chosen.value), 0), len(cases) - 1)
        return scalariser.run_closed(cases[which], operands)
    before = graph.size
    outputs = [scalariser.run_closed(case, operands) for case in cases]
    results = _CaseResults(scalariser, [x.aval for x in equation.outvars], outputs)
    rows = [results.nodes_of(case) for case in range(len(cases))]
    if graph.size - before <= _CHEAP:
        return results.closed(_selected(graph, chosen, rows))
    return results.closed(_branched(graph, chosen, rows))


def _selected(graph: Graph, index: Node, cases: list[list[Node]]) -> list[Node]:
    """Returns the nodes of one of several cases, all of which are computed."""
    if index.dtype != np.bool_:
        last = graph.constant(len(cases) - 1, index.dtype)
        zero = graph.constant(0, index.dtype)
        index = graph.apply(lax.clamp_p, [zero, index, last], {}, index.dtype)
    apply = lambda *x: graph.apply(lax.select_n_p, [index, *x], {}, x[0].dtype)
    return [apply(*x) for x in zip(*cases, strict=True)]


def _branched(graph: Graph, index: Node, cases: list[list[Node]]) -> list[Node]:
    """Returns the nodes of one of several cases, of which rows compute what they need."""
    whole = list(cases[0])
    differ = [k for k in range(len(whole)) if any(case[k] is not whole[k] for case in cases)]
    branch = Branch([[case[k] for k in differ] for case in cases])
    node = make_node("branch", [index], None, value=branch)
    node.depth = max(x.depth for x in (node, *(x for case in branch.cases for x in case)))
    varying = [
        index.varying or any(case[k].varying for case in branch.cases) for k in range(len(differ))
    ]
    node.varying = any(varying)
    results = graph.results(node, [whole[k].dtype for k in differ], varying)
    for k, result in zip(differ, results, strict=True):
        whole[k] = result
    return whole


def zeros_unless(
    scalariser: Any, flag: NodeArray, outputs: list[Any], avals: Sequence[Any]
) -> list[Any]:
    """Returns values that only rows with a flag compute; those of the others are zero."""
    [used] = flag.nodes.reshape(-1)
    zeros = [np.broadcast_to(np.zeros((), x.dtype), x.shape) for x in avals]
    if used.is_constant:
        return outputs if used.value else zeros
    results = _CaseResults(scalariser, avals, [zeros, outputs])
    rows = [results.nodes_of(0), results.nodes_of(1)]
    return results.closed(_branched(scalariser.graph, used, rows))


class _CaseResults:
    """The results of cases; where some are sums into tables, the terms of all cases are."""

    def __init__(self, scalariser: Any, avals: Sequence[Any], outputs: list[list[Any]]):
        self._scalariser, self._avals, self._outputs = scalariser, avals, outputs
        self._tables = [
            any(isinstance(x, TableSum) for x in some) for some in zip(*outputs, strict=True)
        ]
        # By the result, the case and the part of its sum; where another case is taken, to nothing.
        self._terms: list[tuple[int, int, TablePart, Term]] = []
        for k, is_table in enumerate(self._tables):
            for case, some in enumerate(outputs):
                value = some[k]
                if not is_table or is_zero(value):
                    continue
                if isinstance(value, NodeArray):
                    value = TableSum.from_nodes(scalariser.graph, value)
                if not isinstance(value, TableSum):
                    raise NotNative("a sum into a table in a branch")
                self._terms += [
                    (k, case, part, term) for part in value.parts for term in part.terms
                ]

    def nodes_of(self, case: int) -> list[Node]:
        """Returns the nodes of a case: of its arrays, then of all terms."""
        graph, nodes = self._scalariser.graph, []
        for value, aval, is_table in zip(
            self._outputs[case], self._avals, self._tables, strict=True
        ):
            if not is_table:
                nodes += list(self._scalariser.as_nodes(value, aval).nodes.reshape(-1))
        for _, owner, _, term in self._terms:
            if owner == case:
                nodes += [term.place, *term.numbers]
            else:
                zeros = [graph.constant(0, x.dtype) for x in term.numbers]
                nodes += [graph.constant(-1, term.place.dtype), *zeros]
        return nodes

    def closed(self, nodes: list[Node]) -> list[Any]:
        """Returns the values that nodes are, which are in the order of `nodes_of`."""
        rest, values = iter(nodes), []
        for aval, is_table in zip(self._avals, self._tables, strict=True):
            if is_table:
                values.append(TableSum(aval.shape, aval.dtype, []))
                continue
            some = [next(rest) for _ in range(math.prod(aval.shape))]
            values.append(NodeArray(array_of(some, aval.shape), aval.dtype))
        for k, _, part, term in self._terms:
            place, *numbers = [next(rest) for _ in range(1 + len(term.numbers))]
            chosen = part._replace(terms=[Term(place, term.stride, numbers)])
            values[k].parts.append(chosen)
        return values


def _expand(scalariser: Any, equation: Any, values: list[Any]) -> list[Any]:
    """Computes a primitive that consists of others, which newer versions of JAX have."""
    expansions = [getattr(x, "expand", None) for x in equation.params.values()]
    expand = next(filter(None, expansions), None)
    if expand is None:
        raise NotNative(equation.primitive.name)
    avals = [jax.ShapeDtypeStruct(x.aval.shape, x.aval.dtype) for x in equation.invars]
    return scalariser.run_closed(jax.make_jaxpr(lambda *x: expand(*x))(*avals), values)


def _late(scalariser: Any, equation: Any, values: list[Any]) -> list[Any]:
    """Computes a function that is traced only now."""
    avals = [jax.ShapeDtypeStruct(x.aval.shape, x.aval.dtype) for x in equation.invars]
    return scalariser.run_closed(jax.make_jaxpr(equation.params["function"])(*avals), values)


def _any_in_packet(scalariser: Any, equation: Any, values: list[Any]) -> list[NodeArray]:
    [flag] = equation.invars
    node = scalariser.graph.any_in_packet(scalariser.as_nodes(values[0], flag.aval).nodes.item())
    return [NodeArray(array_of([node], ()), flag.aval.dtype)]


CONTROL: dict[str, Callable[[Any, Any, list[Any]], list[Any]]] = {
    "any_in_packet": _any_in_packet,
    "call_hi_primitive": _expand,
    "cond": _cond,
    "late": _late,
    "scan": _scan,
    "while": _while,
}
