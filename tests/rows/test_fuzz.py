"""Random functions of a row, with loops, branches and look-ups, agree with `jax.vmap`."""

import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.extend.core import jaxprs_in_params

from scenegraph.rows import map_rows
from scenegraph.rows._rules import _ELEMENTWISE


# --- Steps. Kinds of values: numbers `f`, whole numbers `i`, unsigned ones `u`, flags `b`.


def like(x: Any, y: Any) -> Any:
    """The second value in the data type of the first."""
    return jnp.asarray(y, x.dtype)


def same(function: Callable) -> Callable:
    """A function of values of one data type and one shape."""

    def apply(*x: Any) -> Any:
        kind = jnp.result_type(*x)
        return function(*jnp.broadcast_arrays(*(jnp.asarray(y, kind) for y in x)))

    return apply


def shifted(function: Callable) -> Callable:
    return same(lambda x, y: function(x, (y & 31).astype(x.dtype) + like(x, 4)))


def flushed(x: Any) -> Any:
    """A number, or zero if processors may take it for zero."""
    return jnp.where(jnp.abs(x) < 2e-38, 0, x)


def signed(x: Any) -> Any:
    """A number whose sign is said: neither NaN nor zero."""
    return jnp.where((x == x) & (x != 0), x, 1)


def sum_of_cotangents(x: Any) -> Any:
    return jax.vjp(lambda x: x * jnp.sin(x), x)[1](jnp.ones_like(x))[0]


UNARY = """abs acos asin asinh atan cbrt ceil cos cosh erf erf_inv erfc exp exp2 expm1 floor
    is_finite log log1p logistic neg rsqrt sign sin sinh sqrt square tan tanh
    stop_gradient""".split()
# Those without native derivatives, or with none that are bounded.
ROUGH = "acosh atanh lgamma nextafter erf_inv tan cosh sinh asin acos rsqrt log exp exp2".split()
BINARY = "add atan2 div max min mul rem sub".split()
COMPARED = "eq ge gt le lt ne".split()
STEPS: list[tuple[str, str, Callable]] = [
    *((name, "f", getattr(lax, name)) for name in UNARY),
    ("acosh", "f", lambda x: lax.acosh(1 + jnp.abs(x))),
    ("atanh", "f", lambda x: lax.atanh(jnp.clip(x, -1, 1))),
    ("lgamma", "f", lambda x: lax.lgamma(jnp.clip(jnp.abs(x), 0.1, 30))),
    ("round", "f", jnp.round),
    ("round", "f", lax.round),
    ("copy", "f", lambda x: jnp.array(x, copy=True)),
    ("add_any", "f", sum_of_cotangents),
    ("integer_pow", "f", lambda x: x**3),
    ("integer_pow", "f", lambda x: 1 / (1 + x**2) + x**-2),
    ("nextafter", "ff", same(lax.nextafter)),
    ("pow", "ff", same(lambda x, y: jnp.abs(flushed(x)) ** jnp.clip(y, -3, 3))),
    *((name, "ff", same(getattr(lax, name))) for name in BINARY),
    *((name, "ff", same(getattr(lax, name))) for name in COMPARED),
    ("clamp", "fff", same(lambda x, y, z: lax.clamp(jnp.minimum(x, z), y, z))),
    ("lt_to", "ff", same(lambda *x: lax.lt_to_p.bind(*map(signed, x)))),
    ("le_to", "ff", same(lambda *x: lax.le_to_p.bind(*map(signed, x)))),
    ("select_n", "bff", lambda b, x, y: same(lambda *z: jnp.where(z[0] != 0, *z[1:]))(b, x, y)),
    (
        "select_n",
        "ifff",
        lambda i, x, y, z: same(
            lambda *c: lax.select_n(
                jnp.broadcast_to(jnp.asarray(jnp.max(i) % 3, jnp.int32), c[0].shape), *c
            )
        )(x, y, z),
    ),
    ("convert_element_type", "f", lambda x: x.astype(jnp.int32)),
    ("convert_element_type", "f", lambda x: x.astype(jnp.uint32)),
    ("convert_element_type", "f", lambda x: x.astype(bool)),
    ("convert_element_type", "i", lambda x: x.astype(float)),
    ("convert_element_type", "u", lambda x: x.astype(float)),
    ("convert_element_type", "b", lambda x: x.astype(float)),
    ("convert_element_type", "i", lambda x: x.astype(jnp.int8).astype(jnp.int32)),
    ("convert_element_type", "u", lambda x: x.astype(jnp.uint16).astype(jnp.int32)),
    *((name, "ii", same(getattr(lax, name))) for name in "add div max min mul rem sub".split()),
    *((name, "uu", same(getattr(lax, name))) for name in "add div max mul rem sub".split()),
    *((name, "ii", same(getattr(lax, name))) for name in COMPARED),
    *((name, "uu", same(getattr(lax, name))) for name in "lt ge".split()),
    ("abs", "i", jnp.abs),
    ("neg", "i", jnp.negative),
    ("sign", "i", jnp.sign),
    ("square", "i", jnp.square),
    ("integer_pow", "i", lambda x: x**3),
    ("clamp", "iii", same(lambda x, y, z: lax.clamp(jnp.minimum(x, z), y, z))),
    ("and", "ii", same(lax.bitwise_and)),
    ("or", "uu", same(lax.bitwise_or)),
    ("xor", "iu", same(lambda x, y: x ^ y)),
    ("not", "u", lax.bitwise_not),
    ("and", "bb", same(lax.bitwise_and)),
    ("or", "bb", same(lax.bitwise_or)),
    ("xor", "bb", same(lax.bitwise_xor)),
    ("not", "b", lax.bitwise_not),
    ("population_count", "i", lax.population_count),
    ("population_count", "u", lambda x: lax.population_count(x.astype(jnp.uint8)).astype(x.dtype)),
    *(
        (f"shift_{name}", "ii", shifted(getattr(lax, f"shift_{name}")))
        for name in ("left", "right_logical", "right_arithmetic")
    ),
    *(
        (f"shift_{name}", "uu", shifted(getattr(lax, f"shift_{name}")))
        for name in ("left", "right_logical", "right_arithmetic")
    ),
]


def vector(x: Any) -> Any:
    return jnp.ravel(jnp.stack([jnp.ravel(x)] * 3))[:3] if x.size < 3 else jnp.ravel(x)[:3]


def matrix(x: Any) -> Any:
    return x if x.shape == (3, 3) else jnp.outer(vector(x), jnp.arange(1, 4).astype(x.dtype))


# Each of a table, and of values of the kinds that it names.
MOVES: list[tuple[str, Callable]] = [
    ("f", lambda t, x: vector(x)),
    ("f", lambda t, x: matrix(x)),
    ("i", lambda t, x: vector(x)),
    ("u", lambda t, x: vector(x)),
    ("b", lambda t, x: vector(x)),
    ("f", lambda t, x: matrix(x).T[::-1]),
    ("f", lambda t, x: vector(x)[np.array([2, 0, 0])]),
    ("f", lambda t, x: jnp.pad(vector(x), (2, 1))[1:4]),
    ("f", lambda t, x: lax.pad(vector(x), like(x, 0.5), [(-1, 1, 1)])[:3]),
    ("ff", lambda t, x, y: jnp.concatenate([vector(x), vector(y)])[1::2]),
    ("f", lambda t, x: jnp.sum(x)),
    ("f", lambda t, x: jnp.prod(vector(x))),
    ("f", lambda t, x: jnp.max(matrix(x), axis=0)),
    ("f", lambda t, x: jnp.min(x)),
    ("i", lambda t, x: jnp.sum(x)),
    ("u", lambda t, x: jnp.max(x)),
    ("b", lambda t, x: jnp.any(x)),
    ("b", lambda t, x: jnp.all(x)),
    ("ff", lambda t, x, y: same(jnp.dot)(vector(x), vector(y))),
    ("ff", lambda t, x, y: matrix(x) @ like(x, vector(y))),
    ("ff", lambda t, x, y: same(jnp.matmul)(matrix(x), matrix(y))),
    ("f", lambda t, x: jnp.cumsum(vector(x))),
    ("f", lambda t, x: lax.cummax(vector(x), reverse=True)),
    ("f", lambda t, x: jnp.sort(vector(x))),
    ("f", lambda t, x: jnp.argsort(vector(x) + 0.0).astype(jnp.int32)),
    ("f", lambda t, x: jnp.argmax(x).astype(jnp.int32)),
    ("if", lambda t, i, x: vector(x)[jnp.max(i)]),
    ("iff", lambda t, i, x, y: vector(x).at[jnp.min(i) % 4].set(like(x, jnp.sum(y)))),
    ("iff", lambda t, i, x, y: vector(x).at[vector(i) % 3].add(like(x, vector(y)))),
    ("if", lambda t, i, x: lax.dynamic_slice(matrix(x), (jnp.min(i), jnp.max(i)), (1, 3))[0]),
    (
        "iff",
        lambda t, i, x, y: lax.dynamic_update_slice(
            matrix(x), like(x, vector(y))[None, :2], (jnp.min(i), jnp.max(i))
        ),
    ),
    ("i", lambda t, i: t[jnp.max(i), 1]),
    ("i", lambda t, i: t[jnp.min(i)]),
    ("i", lambda t, i: t[vector(i), vector(i) % 3]),
    ("u", lambda t, i: t[jnp.max(i), :3]),
    ("f", lambda t, x: t[jnp.max(x).astype(jnp.int32), 2]),
    ("i", lambda t, i: t.at[jnp.max(i)].get(mode="fill", fill_value=0.5)),
    ("i", lambda t, i: t.at[vector(i), 0].get(mode="clip")),
    ("i", lambda t, i: lax.dynamic_slice(t, (jnp.min(i), jnp.max(i)), (2, 2))[1, 0]),
    ("i", lambda t, i: t[:5][jnp.max(i), 2]),
]


# --- Random functions


class Program:
    """A function of a table and a row; its steps are drawn anew, the same ones, at every call."""

    def __init__(self, seed: int, *, length: int = 12, smooth: bool = False):
        self.seed, self.length, self.smooth = seed, length, smooth
        self.__qualname__ = f"program {seed}"

    def __call__(self, table: Any, row: Sequence[Any]) -> list[Any]:
        random = np.random.default_rng(self.seed)
        # Every operation has its turn.
        first = self.length // 2 * self.seed
        own = [STEPS[(first + k) % len(STEPS)] for k in range(self.length // 2)]
        values = _Values(self, table, list(row))
        for name, kinds, function in own:
            if not (self.smooth and name in ROUGH):
                values.append(function(*values.draw(random, kinds)))
            values.step(random, 0)
        return [x for k, x in enumerate(values.all) if k not in values.used]


class _Within(NamedTuple):
    """What a step with others within is made of."""

    table: Any
    x: Any
    y: Any
    i: Any
    turns: int
    seeds: Any
    body: Callable

    def turn(self, k: Any, c: Any) -> Any:
        """A turn of a loop, in which rounding does not grow."""
        return 0.5 * c + 0.3 * jnp.tanh(self.body(self.seeds[0], [c, k]))

    @property
    def times(self) -> Any:
        return jnp.max(self.i) % MOST_TURNS

    @property
    def cases(self) -> list[Callable]:
        return [lambda s=s: self.body(s, []) for s in self.seeds]


def scanned(w: _Within) -> list[Any]:
    rows = w.table[: w.turns] if w.turns % 2 else matrix(w.y)
    step = lambda c, z: (w.turn(jnp.int32(w.turns), c) + like(c, 0.1 * z[0]), jnp.sum(c))
    result, rest = lax.scan(step, w.x, rows, reverse=bool(w.turns % 2))
    return [result, jnp.sum(rest)]


def ended_early(w: _Within) -> list[Any]:
    """A condition of numbers ends the loop of some rows early."""
    go = lambda c: (c[0] < w.times) & (jnp.sum(jnp.abs(c[1])) > 1e-3)
    return [lax.while_loop(go, lambda c: (c[0] + 1, w.turn(*c)), (0 * w.times, w.x))[1]]


# Steps with others within: of a known length, and of one that rows decide.
MOST_TURNS, MOST_DEPTH = 4, 3
FIXED: list[Callable[[_Within], list[Any]]] = [
    lambda w: [lax.fori_loop(0, w.turns, w.turn, w.x)],
    scanned,
    lambda w: [lax.cond(jnp.sum(w.y) > 0.1, *w.cases[:2])],
    lambda w: [lax.switch(jnp.max(w.i) % 5 - 1, w.cases)],
    lambda w: [jax.vmap(lambda z: jnp.sum(w.body(w.seeds[0], [z])))(vector(w.y))],
]
OPEN = [lambda w: [lax.fori_loop(0, w.times, w.turn, w.x)], ended_early]


class _Values:
    """Values of a row so far."""

    def __init__(self, program: Program, table: Any, start: list[Any]):
        self.program, self.table, self.all = program, table, start
        self.used: set[int] = set(range(len(start)))

    def append(self, x: Any) -> None:
        self.all.append(x)

    def draw(self, random: Any, kinds: str) -> list[Any]:
        """Values of some kinds; late ones are likelier."""
        found = []
        for kind in kinds:
            places = [k for k, x in enumerate(self.all) if kind_of(x) == kind]
            place = places[int(len(places) * random.random() ** 0.5)]
            self.used.add(place)
            found.append(self.all[place])
        return found

    def step(self, random: Any, depth: int) -> None:
        chance = random.random()
        if chance < 0.3 and depth < MOST_DEPTH:
            self._nest(random, depth)
        elif chance < 0.65:
            kinds, move = MOVES[int(random.integers(len(MOVES)))]
            self.append(move(self.table, *self.draw(random, kinds)))
        else:
            name, kinds, function = STEPS[int(random.integers(len(STEPS)))]
            if not (self.program.smooth and name in ROUGH):
                self.append(function(*self.draw(random, kinds)))

    def _nest(self, random: Any, depth: int) -> None:
        nested = FIXED if self.program.smooth else [*FIXED, *OPEN]
        nest = nested[int(random.integers(len(nested)))]
        x, y, i = self.draw(random, "ffi")
        turns, seeds = int(random.integers(MOST_TURNS)), random.integers(2**31, size=3)
        body = lambda seed, more: self._inner(seed, more, x, depth + 1)
        self.all.extend(nest(_Within(self.table, x, y, i, turns, seeds, body)))

    def _inner(self, seed: int, more: list[Any], like_this: Any, depth: int) -> Any:
        """A value of the shape and data type of another one, after some steps."""
        random = np.random.default_rng(seed)
        own = _Values(self.program, self.table, [*self.all, *more])
        for _ in range(int(random.integers(1, 4))):
            own.step(random, depth)
        numbers = [x for x in own.all[len(self.all) :] if kind_of(x) == "f"]
        x = numbers[-1] if numbers else own.draw(random, "f")[0]
        shaped = x if x.shape == like_this.shape else jnp.sum(x)
        self.used |= own.used & set(range(len(self.all)))
        return jnp.broadcast_to(shaped, like_this.shape).astype(like_this.dtype)


def kind_of(x: Any) -> str:
    return {"f": "f", "i": "i", "u": "u", "b": "b"}[np.dtype(x.dtype).kind]


# --- Rows with numbers of all kinds


ROWS, TAME = 37, 13
SPECIAL = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 1e30, -1e20, 1e-30, 3.0, 700.0, -1e5, 0.5]
WHOLE = [0, 1, -1, 2, 31, 32, 2**31 - 1, -(2**31), 255, -7, 2**16]


def random_rows(seed: int, *, special: bool = True, double: bool = False) -> tuple[Any, list[Any]]:
    random = np.random.default_rng([seed, 1])
    table = random.normal(size=(19, 3))
    rows = [random.normal(size=(ROWS, *shape)) for shape in ((), (3,), (3, 3), ())]
    whole = [random.integers(-9, 30, (ROWS, *shape)) for shape in ((), (3,), ())]
    flags = random.random(ROWS) < 0.5
    if special:
        for x, some in [*((x, SPECIAL) for x in rows), *((x, WHOLE) for x in whole)]:
            there = random.random(x.shape) < 0.35
            there[:TAME] = False
            x[there] = random.choice(some, x.shape)[there]
    kind = np.float64 if double else np.float32
    types = [np.int32, np.uint32, np.int64 if double else np.int32]
    with np.errstate(all="ignore"):
        numbers = [x.astype(kind) for x in rows]
    numbers += [x.astype(t) for x, t in zip(whole, types, strict=True)]
    return jnp.asarray(table.astype(kind)), [jnp.asarray(x) for x in (*numbers, flags)]


# --- Comparison


def by_vmap(function: Callable, table: Any, rows: Any) -> Any:
    return jax.vmap(function, (None, 0))(table, rows)


def waves(x: Any) -> Any:
    return jnp.cos(1.0 + jnp.arange(x.size, dtype=x.dtype)).reshape(x.shape)


def values(mapper: Callable, program: Callable, table: Any, rows: Any) -> Any:
    return mapper(program, table, rows)


def derivatives(mapper: Callable, program: Callable, table: Any, rows: Any) -> Any:
    """The vjp, and the jvp of the gradient of a smooth sum."""
    rest = [x for x in rows if kind_of(x) != "f"]

    def loss(table: Any, numbers: list[Any]) -> Any:
        results = mapper(program, table, [*numbers, *rest])
        smooth = [jnp.tanh(0.1 * x) for x in results if kind_of(x) == "f"]
        return sum((jnp.sum(x * waves(x)) for x in smooth), jnp.zeros(()))

    points = table, [x for x in rows if kind_of(x) == "f"]
    return jax.jvp(jax.grad(loss, (0, 1)), points, jax.tree.map(waves, points))


def kinds(x: np.ndarray) -> np.ndarray:
    """0 for a finite number, 1 and -1 for infinities, 2 for NaN."""
    return np.where(np.isnan(x), 2, np.where(np.isinf(x), np.sign(x), 0))


def is_far(found: np.ndarray, expected: np.ndarray, tolerance: float) -> np.ndarray:
    with np.errstate(all="ignore"):
        near = np.abs(found - expected) <= tolerance * (1 + np.abs(expected))
    return np.where(kinds(expected) == 0, ~near, kinds(found) != kinds(expected))


def nudged(tree: Any, by: float) -> Any:
    return jax.tree.map(lambda x: x * like(x, 1 + by) if kind_of(x) == "f" else x, tree)


def as_wide(tree: Any) -> Any:
    with jax.enable_x64(True):
        return jax.tree.map(lambda x: x.astype(float) if kind_of(x) == "f" else x, tree)


def others_of(reference: Callable, operands: Any, *, double: bool) -> list[Any]:
    """What `jax.vmap` makes of it by other roundings: of which nothing else is expected."""
    compiled = jax.jit(reference)
    found = [compiled(*nudged(operands, s * (1e-14 if double else 1e-6))) for s in (1, -1)]
    if not double:
        with jax.enable_x64(True):
            found.append(jax.jit(reference)(*as_wide(operands)))
    return [*found, reference(*operands)]


def assert_agree(
    programs: list[Program], quantities: Callable, caplog: Any, *, double: bool = False
) -> None:
    """Compares some programs, which are compiled together, on rows of their own."""
    special = quantities is values
    operands = [random_rows(x.seed, special=special, double=double) for x in programs]
    run = lambda mapper, all_: [
        quantities(mapper, program, *x) for program, x in zip(programs, all_, strict=True)
    ]
    with caplog.at_level(logging.INFO, "scenegraph.compile"):
        found = jax.jit(partial(run, map_rows))(operands)
    # A few derivatives are left to `jax.vmap`.
    assert "not native" not in caplog.text or quantities is derivatives, caplog.text
    expected = jax.jit(partial(run, by_vmap))(operands)
    for program, x, ours, theirs in zip(programs, operands, found, expected, strict=True):
        reference = partial(quantities, by_vmap, program)
        others = partial(others_of, reference, x, double=double)
        compare(program, ours, theirs, others, 1e-9 if double else 1e-4)


def compare(
    program: Program, found: Any, expected: Any, others: Callable, tolerance: float
) -> None:
    known = None
    for place, (x, y) in enumerate(
        zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True)
    ):
        assert (x.shape, x.dtype) == (y.shape, y.dtype)
        a, b = (np.asarray(z).astype(np.float64) for z in (x, y))
        wrong = is_far(a, b, tolerance if kind_of(x) == "f" else 0.0)
        if not wrong.any():
            continue
        # Rounding may have grown: the other results of `jax.vmap` say by how much.
        known = others() if known is None else known
        rest = [np.asarray(jax.tree.leaves(z)[place]).astype(np.float64) for z in known]
        with np.errstate(all="ignore"):
            spread = np.max([np.where(kinds(z) == 0, np.abs(z - b), 0) for z in rest], axis=0)
            near = np.abs(a - b) <= 30 * spread
        sure = np.all([kinds(z) == kinds(b) for z in rest], axis=0)
        wrong &= sure & ~near
        details = np.argwhere(wrong)[:3].tolist(), a[wrong][:3], b[wrong][:3], spread[wrong][:3]
        assert not wrong.any(), (program.seed, place, *details)


# --- Tests


TOGETHER = 5
PROGRAMS = 40


def programs_from(first: int, **how: Any) -> list[Program]:
    return [Program(seed, **how) for seed in range(first, first + TOGETHER)]


@pytest.mark.parametrize("first", range(0, PROGRAMS - TOGETHER, TOGETHER))
def test_random_programs(first, caplog):
    assert_agree(programs_from(first), values, caplog)


@pytest.mark.usefixtures("x64")
def test_random_programs_in_double_precision(caplog):
    assert_agree(programs_from(PROGRAMS - TOGETHER), values, caplog, double=True)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(PROGRAMS, 2000, TOGETHER))
def test_more_random_programs(first, caplog):
    assert_agree(programs_from(first), values, caplog)


@pytest.mark.slow
@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("first", range(0, 200, TOGETHER))
def test_more_random_programs_in_double_precision(first, caplog):
    assert_agree(programs_from(first), values, caplog, double=True)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(300))
def test_derivatives_of_random_programs(seed, caplog):
    assert_agree([Program(seed, length=8, smooth=True)], derivatives, caplog)


def names_in(jaxpr: Any) -> set[str]:
    """The names of all primitives of a jaxpr, and of those within."""
    found = set()
    for equation in jaxpr.eqns:
        found.add(equation.primitive.name)
        for inner in jaxprs_in_params(equation.params):
            found |= names_in(inner)
    return found


def test_programs_have_every_elementwise_operation():
    table, rows = random_rows(0)
    row = [x[0] for x in rows]
    found = set()
    for seed in range(PROGRAMS):
        found |= names_in(jax.make_jaxpr(Program(seed))(table, row).jaxpr)
    # Newer versions of JAX alone have these: the first in derivatives.
    assert not set(_ELEMENTWISE) - found - {"one_minus_square", "log2"}
    assert {"while", "scan", "cond", "gather", "dot_general", "sort", "reduce_sum"} <= found
