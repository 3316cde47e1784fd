"""Programs in pieces: compiled beside each other, and run one after the other.

XLA compiles a program on one core, and for many of its kernels looks through the whole of it. A
long program is cut here, at the top level and in the bodies of loops of few turns, whose turns are
then taken from outside. What goes from piece to piece is in memory then, and each run of a piece
has its cost: this is for programs that run a few times.
"""

import concurrent.futures
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import jax.numpy as jnp
from jax.extend.core import ClosedJaxpr, jaxpr_as_fun, Literal
from jax.extend.core.primitives import jit_p, remat_p
from jax.interpreters.partial_eval import dce_jaxpr

from ._compiled import Compiled, like
from ._turns import as_loop, Turns
from ._work import count_equations, count_outside_of_kernels, estimate_work


# Equations of a piece: with fewer, what is done once a piece is most of the time.
_SIZE = 1000
# A loop is taken apart if that makes so many turns at most, and no piece of it more than this part.
_TURNS, _PART = 64, 0.75
# A piece whose equations are computed more often than this is worth optimising: measured, of
# searches. Of loops of an unknown number of turns, a part of the largest number is expected.
_OFTEN, _EXPECTED = 2e7, 0.25
# Programs that are compiled at the same time; each takes memory.
_AT_ONCE = 8


class InPieces:
    """A traced function as a program whose pieces begin to be compiled at once.

    Pieces that compute much have options of their own.
    """

    def __init__(self, closed: ClosedJaxpr, options: Mapping[str, Any], of_much: Mapping[str, Any]):
        jaxpr = dce_jaxpr(closed.jaxpr, True, True)[0]
        self._sequence = _Sequence(ClosedJaxpr(jaxpr, closed.consts), turns=1)
        # The number of equations, those within kernels left out.
        self.length = sum(map(count_outside_of_kernels, jaxpr.eqns))
        pool = concurrent.futures.ThreadPoolExecutor(min(os.cpu_count() or 1, _AT_ONCE))
        try:
            # The longest begin first.
            for program in sorted(self._sequence.programs(), key=lambda x: x.weight, reverse=True):
                program.compile(pool, of_much if program.times > _OFTEN else options)
        finally:
            pool.shutdown(wait=False)

    def __call__(self, *values: Any) -> list[Any]:
        return self._sequence(*values)


class _Group(NamedTuple):
    """Equations that are computed together, of which variables, and which they make."""

    equations: list[Any]
    inputs: list[Any]
    outputs: list[Any]
    done: list[Any]  # the inputs that nothing needs afterwards


class _Sequence:
    """A jaxpr as pieces, one after the other."""

    def __init__(self, closed: ClosedJaxpr, turns: float):
        self._jaxpr, self._consts = closed.jaxpr, [jnp.asarray(x) for x in closed.consts]
        self._groups = _groups(closed.jaxpr)
        self._parts = [_part(closed.jaxpr, group, turns) for group in self._groups]

    def programs(self) -> list[Compiled]:
        return [program for part in self._parts for program in part.programs()]

    def __call__(self, *values: Any) -> list[Any]:
        names = (*self._jaxpr.constvars, *self._jaxpr.invars)
        known = dict(zip(names, (*self._consts, *values), strict=True))
        for group, part in zip(self._groups, self._parts, strict=True):
            results = part(*(known[x] for x in group.inputs))
            known |= zip(group.outputs, results, strict=True)
            for x in group.done:
                del known[x]
        return [_read(x, known) for x in self._jaxpr.outvars]


def _read(x: Any, known: Mapping[Any, Any]) -> Any:
    if not isinstance(x, Literal):
        return known[x]
    aval: Any = x.aval
    return jnp.asarray(x.val, aval.dtype)


def _groups(jaxpr: Any) -> list[_Group]:
    """Divides the equations of a jaxpr, in order."""
    groups = []
    # From the last to the first: what is needed after each.
    after = _variables(jaxpr.outvars)
    for equations in reversed(list(_divide(jaxpr.eqns))):
        made = _variables(x for equation in equations for x in equation.outvars)
        used = _variables(x for equation in equations for x in equation.invars)
        inputs, outputs = [x for x in used if x not in made], [x for x in made if x in after]
        done = [x for x in inputs if x not in after]
        groups.append(_Group(equations, inputs, outputs, done))
        after |= used
    return groups[::-1]


def _divide(equations: Sequence[Any]) -> Iterator[list[Any]]:
    """Divides equations, in order; one that is too large for a group is alone."""
    group, weight = [], 0
    for equation in equations:
        own = count_equations(equation)
        if group and weight + own > _SIZE:
            yield group
            group, weight = [], 0
        group.append(equation)
        weight += own
    if group:
        yield group


def _variables(atoms: Iterable[Any]) -> dict[Any, None]:
    """Returns the different variables among atoms, in order."""
    return {x: None for x in atoms if not isinstance(x, Literal)}


def _part(jaxpr: Any, group: _Group, turns: float) -> "Compiled | _Inner":
    """Returns what computes a group: a program, or what is within one large equation."""
    first, *others = group.equations
    inner = None if others or count_equations(first) <= _SIZE else _open(first, turns)
    if inner is not None:
        return _Inner(inner, first, group)
    parts = {"invars": group.inputs, "eqns": group.equations, "outvars": group.outputs}
    function = jaxpr_as_fun(ClosedJaxpr(jaxpr.replace(constvars=[], **parts), []))
    weight = sum(map(count_equations, group.equations))
    times = turns * sum(map(estimate_work, group.equations)) / weight
    return Compiled(function, [like(x.aval) for x in group.inputs], weight=weight, times=times)


def _open(equation: Any, turns: float) -> "_Sequence | Turns | None":
    """Returns what computes a large equation in pieces; `None` where it stays whole."""
    if equation.primitive in (jit_p, remat_p):
        inner = equation.params["jaxpr"]
        closed = inner if isinstance(inner, ClosedJaxpr) else ClosedJaxpr(inner, [])
        return _Sequence(closed, turns)
    loop = as_loop(equation)
    if loop is None or not loop.rows:
        return None
    turns *= loop.rows * (1 if loop.turns is None else _EXPECTED)
    if turns > _TURNS:
        return None
    body = _Sequence(loop.body, turns)
    largest = max(program.weight for program in body.programs())
    return Turns(loop, body) if largest <= _PART * count_equations(equation) else None


class _Inner:
    """One large equation, by what is within it."""

    def __init__(self, inner: _Sequence | Turns, equation: Any, group: _Group):
        self._inner, self._inputs, self._operands = inner, group.inputs, equation.invars
        self._places = [equation.outvars.index(x) for x in group.outputs]

    def programs(self) -> list[Compiled]:
        return self._inner.programs()

    def __call__(self, *values: Any) -> list[Any]:
        known = dict(zip(self._inputs, values, strict=True))
        results = self._inner(*(_read(x, known) for x in self._operands))
        return [results[i] for i in self._places]
