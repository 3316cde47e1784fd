"""Programs in pieces: compiled beside each other, and run one after the other.

XLA compiles a program on one core, and for many of its kernels looks through the whole of it. A
long program is cut here, at the top level and in the bodies of loops of few turns, whose turns are
then taken from outside. What goes from piece to piece is in memory then, and each run of a piece
has its cost: small pieces are for programs that run a few times.

Turns that need nothing of each other are shared out to threads, which pays for programs that run
often, too: those are cut at such loops alone.
"""

import concurrent.futures
import dataclasses
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from .._jax import (
    ClosedJaxpr,
    custom_jvp_call_p,
    dce_jaxpr,
    jaxpr_as_fun,
    jit_p,
    Literal,
    remat_p,
)
from ._compiled import Compiled, like
from ._keys import key_of
from ._many_arrays import has_many_arrays, ManyArrays, ManyNumbers
from ._turns import as_loop, Turns
from ._work import count_equations, estimate_work


class Cut(NamedTuple):
    """The places at which programs are cut."""

    size: float  # equations of a piece
    turns: int  # the most turns of a loop that is taken apart
    part: float  # the largest part of a loop that a piece of its body may be
    shared: bool  # whether only loops of independent turns are taken apart
    many: float  # the most arrays that one program stacks, or takes apart


# With smaller pieces, what is done once a piece is most of the time.
INTO_PIECES = Cut(1000, 64, 0.75, shared=False, many=64)
AT_SHARED_TURNS = Cut(math.inf, 4096, 1, shared=True, many=64)
_NOWHERE = Cut(math.inf, 0, 1, shared=True, many=math.inf)
# A turn of less equations is not worth a thread.
_FEWEST = 500
# A piece whose equations are computed more often than this is worth optimising: measured, of
# searches. Of loops of an unknown number of turns, a part of the largest number is expected.
_OFTEN, _EXPECTED = 2e7, 0.25
# Functions of more equations are compiled by themselves, once for all that are equal: as searches,
# which the backward pass makes again.
_OF_ITS_OWN = 300
# Programs that are compiled at the same time; each takes memory.
_AT_ONCE = 8


class InPieces:
    """A traced function as a program whose pieces begin to be compiled at once.

    Pieces that compute much have options of their own.
    """

    def __init__(
        self,
        closed: ClosedJaxpr,
        options: Mapping[str, Any],
        of_much: Mapping[str, Any],
        cut: Cut = INTO_PIECES,
    ):
        jaxpr = dce_jaxpr(closed.jaxpr, True, True)[0]
        self._sequence = _Sequence(ClosedJaxpr(jaxpr, closed.consts), 1, cut)
        pool = concurrent.futures.ThreadPoolExecutor(min(os.cpu_count() or 1, _AT_ONCE))
        try:
            begun: dict[Any, Compiled] = {}
            # The longest begin first; of equal ones, the one that runs most often.
            order = lambda x: (x.weight, x.times)
            for program in sorted(self._sequence.programs(), key=order, reverse=True):
                if program.key in begun:
                    program.share(begun[program.key])
                    continue
                program.compile(pool, of_much if program.times > _OFTEN else options)
                begun[program.key] = program
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

    def __init__(self, closed: ClosedJaxpr, turns: float, cut: Cut):
        # `jnp.asarray` compiles a program for every shape.
        jaxpr = closed.jaxpr
        self._consts = [
            _on_device(x, v.aval) for v, x in zip(jaxpr.constvars, closed.consts, strict=True)
        ]
        self._inputs, self._outputs = (*jaxpr.constvars, *jaxpr.invars), jaxpr.outvars
        groups = _groups(jaxpr, turns, cut)
        self._parts = [_part(jaxpr, group, turns, cut) for group in groups]
        self._numbers = ManyNumbers([x for x in self._outputs if isinstance(x, Literal)])
        # Without the equations, which take much memory.
        self._groups = [group._replace(equations=[]) for group in groups]

    def programs(self) -> list[Compiled]:
        parts = *self._parts, self._numbers
        return [program for part in parts for program in part.programs()]

    def __call__(self, *values: Any) -> list[Any]:
        known = dict(zip(self._inputs, (*self._consts, *values), strict=True))
        for group, part in zip(self._groups, self._parts, strict=True):
            results = part(*(known[x] for x in group.inputs))
            known |= zip(group.outputs, results, strict=True)
            for x in group.done:
                del known[x]
        numbers = self._numbers()
        return [next(numbers) if isinstance(x, Literal) else known[x] for x in self._outputs]


def _read(x: Any, known: Mapping[Any, Any]) -> Any:
    if not isinstance(x, Literal):
        return known[x]
    aval: Any = x.aval
    return jnp.asarray(x.val, aval.dtype)


def _on_device(value: Any, aval: Any) -> Any:
    known = isinstance(value, np.ndarray) and value.dtype == aval.dtype
    return jax.device_put(value) if known else jnp.asarray(value, aval.dtype)


def _groups(jaxpr: Any, turns: float, cut: Cut) -> list[_Group]:
    """Divides the equations of a jaxpr into groups that are computed in order."""
    groups = []
    # From the last to the first: what is needed after each.
    after = _variables(jaxpr.outvars)
    for equations in reversed(_divide(jaxpr.eqns, turns, cut)):
        made = _variables(x for equation in equations for x in equation.outvars)
        used = _variables(x for equation in equations for x in equation.invars)
        inputs, outputs = [x for x in used if x not in made], [x for x in made if x in after]
        done = [x for x in inputs if x not in after]
        groups.append(_Group(equations, inputs, outputs, done))
        after |= used
    return groups[::-1]


def _divide(equations: Sequence[Any], turns: float, cut: Cut) -> list[list[Any]]:
    """Divides equations; one that is opened, or too large for a group, is alone.

    Each of the others joins the last group that has room and comes after what it needs: a program
    of one equation takes about as long to compile as one of fifty.
    """
    groups: list[_Growing] = []
    made: dict[Any, int] = {}  # the group of a variable
    for equation in equations:
        own = count_equations(equation)
        alone = _is_alone(equation, own, turns, cut)
        # Programs that run often are cut as little as can be, and in order.
        least = len(groups) - 1 if cut.shared else 0
        needed = (made[x] for x in equation.invars if not isinstance(x, Literal) and x in made)
        first = max((i + groups[i].full for i in needed), default=0)
        places = reversed(range(max(first, least), len(groups)))
        room = (i for i in places if not groups[i].full and groups[i].weight + own <= cut.size)
        place = len(groups) if alone else next(room, len(groups))
        if place == len(groups):
            groups.append(_Growing())
        groups[place].add(equation, own, alone or own > cut.size)
        made |= dict.fromkeys(equation.outvars, place)
    return [group.equations for group in groups]


@dataclasses.dataclass
class _Growing:
    """Equations to be computed together; nothing joins those that are full."""

    equations: list[Any] = dataclasses.field(default_factory=list)
    weight: float = 0
    full: bool = False

    def add(self, equation: Any, weight: float, full: bool) -> None:
        self.equations.append(equation)
        self.weight += weight
        self.full = full


def _is_alone(equation: Any, size: int, turns: float, cut: Cut) -> bool:
    """Returns true if no other equation is computed together with one of so many within."""
    if shares_turns(equation, cut) or has_many_arrays(equation, cut.many):
        return True
    if cut.shared or size <= _OF_ITS_OWN:
        return False
    # What is around a search is not worth optimising.
    return equation.primitive is jit_p or turns * estimate_work(equation) > _OFTEN * size


def shares_turns(equation: Any, cut: Cut) -> bool:
    """Returns true if an equation is, or has within, a loop that is cut for its shared turns."""
    if not cut.shared or count_equations(equation) < _FEWEST or not cut.turns:
        return False
    if equation.primitive in (jit_p, remat_p):
        return any(shares_turns(x, cut) for x in _inner(equation).jaxpr.eqns)
    loop = as_loop(equation)
    return loop is not None and loop.is_independent and 1 < loop.rows <= cut.turns


def _inner(equation: Any) -> ClosedJaxpr:
    inner = equation.params["call_jaxpr" if equation.primitive is custom_jvp_call_p else "jaxpr"]
    return inner if isinstance(inner, ClosedJaxpr) else ClosedJaxpr(inner, [])


def _variables(atoms: Iterable[Any]) -> dict[Any, None]:
    """Returns the different variables among atoms, in order."""
    return {x: None for x in atoms if not isinstance(x, Literal)}


def _part(jaxpr: Any, group: _Group, turns: float, cut: Cut) -> "Compiled | _Inner":
    """Returns what computes a group: a program, or what is within one large equation."""
    first, *others = group.equations
    if has_many_arrays(first, cut.many):
        return _Inner(ManyArrays(first), first, group)
    large = not others and (count_equations(first) > cut.size or shares_turns(first, cut))
    inner = _open(first, turns, cut) if large else None
    if inner is not None:
        return _Inner(inner, first, group)
    parts = {"invars": group.inputs, "eqns": group.equations, "outvars": group.outputs}
    function = jaxpr_as_fun(ClosedJaxpr(jaxpr.replace(constvars=[], **parts), []))
    weight = sum(map(count_equations, group.equations))
    times = turns * sum(map(estimate_work, group.equations)) / weight
    operands = [like(x.aval) for x in group.inputs]
    return Compiled(function, operands, weight=weight, times=times, key=key_of(*group[:3]))


def _open(equation: Any, turns: float, cut: Cut) -> "_Sequence | Turns | None":
    """Returns what computes a large equation in pieces; `None` where it stays whole."""
    if equation.primitive in (jit_p, remat_p, custom_jvp_call_p):
        return _Sequence(_inner(equation), turns, cut)
    loop = as_loop(equation)
    if loop is None or not loop.rows:
        return None
    turns *= loop.rows * (1 if loop.turns is None else _EXPECTED)
    if turns > cut.turns:
        return None
    # Turns within turns that are shared out are taken by the program.
    body = _Sequence(loop.body, turns, _NOWHERE if cut.shared else cut)
    largest = max(program.weight for program in body.programs())
    return Turns(loop, body) if largest <= cut.part * count_equations(equation) else None


class _Inner:
    """One large equation, by what is within it."""

    def __init__(self, inner: _Sequence | Turns | ManyArrays, equation: Any, group: _Group):
        self._inner, self._inputs, self._operands = inner, group.inputs, equation.invars
        places = {x: i for i, x in enumerate(equation.outvars)}
        self._places = [places[x] for x in group.outputs]

    def programs(self) -> list[Compiled]:
        return self._inner.programs()

    def __call__(self, *values: Any) -> list[Any]:
        known = dict(zip(self._inputs, values, strict=True))
        results = self._inner(*(_read(x, known) for x in self._operands))
        return [results[i] for i in self._places]
