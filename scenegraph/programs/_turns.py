"""Loops whose turns are taken from outside of compiled programs."""

import collections
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from .._jax import add_jaxvals_p as add_any_p, ClosedJaxpr, Literal, Primitive, scan_p
from .._typing import Array
from ._compiled import Compiled, like
from ._threads import share_out


class Loop(NamedTuple):
    """An equation as a loop: what goes into its body, and what becomes of the body's results.

    An operand of the body is the `"same"` in all turns, `"carried"` from turn to turn, a `"row"` of
    an operand of the equation, or the `"start"` of a sum, which the body does not read. A result is
    `"carried"`, a `"row"` of the equation's result, or `"summed"` over all turns; either all sums
    have a start, or none.
    """

    body: ClosedJaxpr
    operands: Sequence[str]
    results: Sequence[str]
    rows: int  # the largest number of turns
    # The number of turns, of the equation's operands; `None` for `rows`.
    turns: Callable[[Sequence[Any]], int] | None = None
    reverse: bool = False

    @property
    def is_independent(self) -> bool:
        """True if no turn needs what another computes."""
        return "carried" not in (*self.operands, *self.results)


# Of primitives that are loops: what an equation's parameters say.
_loops: dict[Primitive, Callable[[Any], Loop]] = {}


def take_turns_outside(primitive: Primitive, loop: Callable[[Any], Loop]) -> None:
    """Says how equations of a primitive are computed turn by turn."""
    _loops[primitive] = loop


def as_loop(equation: Any) -> Loop | None:
    """Returns an equation as a loop, if it is one that can be taken apart."""
    if equation.primitive not in _loops:
        return None
    # Random keys have no zeros to begin with.
    is_key = lambda aval: jnp.issubdtype(aval.dtype, jax.dtypes.extended)
    loop = _loops[equation.primitive](equation)
    return None if any(map(is_key, loop.body.out_avals)) else loop


def _scan(equation: Any) -> Loop:
    """Returns a `jax.lax.scan` as a loop.

    Its parameters have other names in every version: rows have one axis less in the body.
    """
    body, length = equation.params["jaxpr"], equation.params["length"]
    given = zip(equation.invars, body.in_avals, strict=True)
    made = zip(equation.outvars, body.out_avals, strict=True)
    rows = sum(x.aval.ndim != inner.ndim for x, inner in given)
    carried = sum(x.aval.ndim == inner.ndim for x, inner in made)
    same = len(body.in_avals) - carried - rows
    operands = ["same"] * same + ["carried"] * carried + ["row"] * rows
    results = ["carried"] * carried + ["row"] * (len(body.out_avals) - carried)
    return _as_sums(Loop(body, operands, results, length, reverse=equation.params["reverse"]))


def _as_sums(loop: Loop) -> Loop:
    """Returns a loop that sums if that is all that it carries, as gradients do."""
    inner = loop.body.jaxpr
    before = _pick(inner.invars, loop.operands, "carried")
    after = _pick(inner.outvars, loop.results, "carried")
    made = {x: equation for equation in inner.eqns for x in equation.outvars}
    read = collections.Counter(x for equation in inner.eqns for x in _variables(equation.invars))
    read.update(_variables(inner.outvars))
    added = [_added(made, read, *pair) for pair in zip(before, after, strict=True)]
    if not added or None in added:
        return loop
    sums = {id(made[x]) for x in after}
    equations = [equation for equation in inner.eqns if id(equation) not in sums]
    results = ["summed" if x == "carried" else x for x in loop.results]
    outvars = _merge(results, {"summed": added, "row": _pick(inner.outvars, results, "row")})
    return loop._replace(
        body=ClosedJaxpr(inner.replace(eqns=equations, outvars=outvars), loop.body.consts),
        operands=["start" if x == "carried" else x for x in loop.operands],
        results=results,
    )


def _added(made: Mapping[Any, Any], read: Mapping[Any, int], before: Any, after: Any) -> Any:
    """Returns what a turn adds to what it carries; `None` if it does anything else with it."""
    add = None if isinstance(after, Literal) else made.get(after)
    if add is None or add.primitive is not add_any_p or read[before] != 1 or read[after] != 1:
        return None
    others = [x for x in add.invars if x is not before]
    return others[0] if len(others) == 1 else None


def _variables(atoms: Sequence[Any]) -> list[Any]:
    return [x for x in atoms if not isinstance(x, Literal)]


take_turns_outside(scan_p, _scan)


class Turns:
    """A loop, turn by turn, given what computes its body."""

    def __init__(self, loop: Loop, body: Any):
        self._loop, self._body = loop, body
        rows = [like(x, loop.rows) for x in _pick(loop.body.in_avals, loop.operands, "row")]
        starts = list(map(like, _pick(loop.body.in_avals, loop.operands, "start")))
        at, kept = jax.ShapeDtypeStruct((), jnp.int32), jax.eval_shape(self._begin, starts)
        new = {role: list(map(like, self._results(role))) for role in kept}
        self._start, self._take = Compiled(self._begin, (starts,)), Compiled(_take, (rows, at))
        self._put = Compiled(_put, (kept, new, at), donated=0)

    def programs(self) -> list[Compiled]:
        return [self._start, self._take, self._put, *self._body.programs()]

    def __call__(self, *values: Any) -> Sequence[Any]:
        loop = self._loop
        count = loop.rows if loop.turns is None else loop.turns(values)
        parts = {role: _pick(values, loop.operands, role) for role in set(loop.operands)}
        rows, kept = parts.get("row", []), self._start(parts.get("start", []))

        def turn(at: Any) -> tuple[Any, Sequence[Any]]:
            return at, self._body(*_merge(loop.operands, parts | {"row": self._take(rows, at)}))

        numbers = np.arange(count, dtype=np.int32)[:: -1 if loop.reverse else 1]
        # One by one, a turn begins when what the one before carries is known.
        for at, new in (share_out if loop.is_independent else map)(turn, numbers):
            parts["carried"] = _pick(new, loop.results, "carried")
            kept = self._put(kept, {role: _pick(new, loop.results, role) for role in kept}, at)
        return _merge(loop.results, parts | kept)

    def _results(self, role: str) -> list[Any]:
        """Returns the types of the body's results of one role."""
        return _pick(self._loop.body.out_avals, self._loop.results, role)

    def _begin(self, starts: list[Array]) -> dict[str, list[Array]]:
        """Returns what the results that are not carried are before the first turn."""
        rows = [jnp.zeros((self._loop.rows, *x.shape), x.dtype) for x in self._results("row")]
        sums = [jnp.zeros(x.shape, x.dtype) for x in self._results("summed")]
        # Copies, because they are written to.
        return {"row": rows, "summed": list(map(jnp.copy, starts)) or sums}


def _take(rows: list[Array], i: Array) -> list[Array]:
    """Returns a turn's rows."""
    return [x[i] for x in rows]


def _put(
    kept: dict[str, list[Array]], new: dict[str, list[Array]], i: Array
) -> dict[str, list[Array]]:
    """Adds a turn's results."""
    rows = [x.at[i].set(y) for x, y in zip(kept["row"], new["row"], strict=True)]
    sums = [x + y for x, y in zip(kept["summed"], new["summed"], strict=True)]
    return {"row": rows, "summed": sums}


def _pick(values: Sequence[Any], roles: Sequence[str], role: str) -> list[Any]:
    """Returns the values of one role."""
    return [x for x, its in zip(values, roles, strict=True) if its == role]


def _merge(roles: Sequence[str], parts: Mapping[str, Sequence[Any]]) -> list[Any]:
    """Returns the next of its part for every role."""
    rest = {role: iter(part) for role, part in parts.items()}
    return [next(rest[role]) for role in roles]
