"""`map_rows` agrees with `jax.vmap` on random programs: values, NaN, infinities, derivatives."""

import dataclasses
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import scenegraph as sg
from scenegraph.rows import map_rows
from scenegraph.rows._graph import Node
from scenegraph.rows._simplify import _RULES


# --- Random programs


EYE, ONE_HOT, ZERO = np.eye(3), np.array([0.0, 1.0, 0.0]), np.zeros(3)
MIXED = np.array([[0.0, 2.0, -1.0], [1.0, 0.0, 0.0], [0.5, 0.0, 3.0]])


def unsigned(x):
    """The number with the zero that has no sign: `1 / x` is not asked for the sign of a zero."""
    return jnp.where(x == 0, 0.0, x)


def inner_rows(m, v):
    return map_rows(lambda s, row: jnp.sum(row * s) + row[0], v, m)


def cases(n, v, w):
    return lax.cond(n % 2 == 0, lambda v, w: v * w, lambda v, w: v - 2 * w, v, w)


def repeated(v, w):
    return lax.scan(lambda x, y: (0.5 * x + y, x * y), v, jnp.stack([w, v]))[1][1]


# Operands are numbers `s`, vectors `v` and matrices `m` of side 3, and whole numbers `n`; the last
# letter is that of the result.
STEPS: list[tuple[str, Callable]] = [
    *(
        (f"{kind} {kind}", function)
        for kind in "sv"
        for function in (
            lambda x: -x,
            jnp.abs,
            jnp.sin,
            jnp.cos,
            jnp.tanh,
            jnp.exp,
            jnp.floor,
            jnp.sign,
            jnp.square,
            jax.nn.sigmoid,
            lambda x: jnp.sqrt(unsigned(x)),
            lambda x: jnp.log(jnp.abs(x)),
            lambda x: 1 / unsigned(x),
            lambda x: unsigned(x) ** -2,
            lambda x: x**3,
            lambda x: 0 * x,
            lambda x: 0 / unsigned(x),
            lambda x: x - x,
            lambda x: x / unsigned(x),
            lambda x: 1 * x + 0,
            lambda x: jnp.where(jnp.isfinite(x), x, 0),
            lambda x: jnp.where(x > 0, jnp.sqrt(jnp.where(x > 0, x, 1)), 0),
            lambda x: jnp.clip(x, -1, 2),
            lambda x: x + lax.stop_gradient(x),
            jax.jit(lambda x: x * jnp.cos(x)),
            jax.checkpoint(lambda x: jnp.sin(x) * x),
        )
    ),
    *(
        (kinds, function)
        for kinds in ("s s s", "v v v", "v s v", "s v v")
        for function in (
            lambda x, y: x + y,
            lambda x, y: x - y,
            lambda x, y: x * y,
            lambda x, y: x / unsigned(y),
            jnp.maximum,
            jnp.minimum,
            lambda x, y: jnp.where(x < y, x, y),
            lambda x, y: jnp.where((x == y) | (x != x), y, x * 2),
            lambda x, y: jnp.arctan2(unsigned(x), unsigned(y)),
            lambda x, y: x % unsigned(y),
            lambda x, y: sg.numerics.safe_divide(*jnp.broadcast_arrays(x, y)),
        )
    ),
    *(
        ("v v", function)
        for function in (
            lambda v: v * ZERO,
            lambda v: v * ONE_HOT,
            lambda v: EYE @ v,
            lambda v: MIXED @ v,
            lambda v: v[np.array([2, 0, 0])],
            lambda v: jnp.concatenate([v[1:], v[:1]]),
            lambda v: jnp.pad(v[:2], (1, 0)),
            lambda v: v[::-1],
            lambda v: jnp.repeat(v[::2], np.array([1, 2]), total_repeat_length=3),
            jnp.cumsum,
            jnp.cumprod,
            jnp.sort,
            lambda v: lax.cumsum(v, reverse=True),
            sg.numerics.safe_normalise,
            lambda v: jax.jvp(lambda x: x * jnp.sum(x), (v,), (jnp.asarray(ONE_HOT, v.dtype),))[1],
        )
    ),
    *(
        ("v s", function)
        for function in (
            jnp.sum,
            jnp.prod,
            jnp.max,
            jnp.min,
            lambda v: v[1],
            lambda v: jnp.dot(v, np.array([0.0, 0.0, 1.0])),
            lambda v: jnp.where(jnp.all(v > 0), v[0], v[1]),
            sg.numerics.safe_norm,
        )
    ),
    *(
        ("n n", function)
        for function in (
            lambda n: n ^ (n >> 3),
            lambda n: (n << 2) & 255,
            lambda n: lax.shift_right_logical(n, 1) % 97,
        )
    ),
    ("v v v m", lambda *v: jnp.stack(v, axis=1)),
    ("v v m", lambda v, w: jnp.outer(v, w)),
    ("m m", jnp.transpose),
    ("m m", lambda m: jnp.reshape(m, 9, order="F").reshape(3, 3)),
    ("m m", lambda m: m @ MIXED),
    ("m m m", jnp.matmul),
    ("m m", lambda m: jax.vmap(jnp.cumsum)(m)),
    ("m v v", jnp.matmul),
    ("m v", lambda m: jnp.sum(m, axis=1)),
    ("m v", jnp.diagonal),
    ("m v", lambda m: jnp.split(m, 3)[1][0]),
    ("m v", lambda m: jnp.max(m, axis=0)),
    ("m v v", lambda m, v: jax.vmap(lambda row: jnp.sum(row * v) * row[1])(m)),
    ("m v v", inner_rows),
    ("v v v", lambda v, w: repeated(v, w)),
    ("s s s v", lambda *s: jnp.stack(s)),
    ("n n", lambda n: (n + 2) % 3),
    ("n n", lambda n: 0 * n + n // 2),
    ("n n n", lambda n, k: jnp.where(n > k, n - k, n)),
    ("v n", lambda v: jnp.argmax(jnp.where(v == v, v, 0)).astype(jnp.int32)),
    ("s n", lambda s: (s > 0.5).astype(jnp.int32)),
    ("n v s", lambda n, v: v[n]),
    ("n v v", lambda n, v: v.at[n].add(1.0)),
    ("n s s", lambda n, s: s * n),
    ("n v v v", cases),
]
LENGTH = 9
FIRST = {"s": 1, "v": 3, "m": 1, "n": 1}  # how many values a program starts with


@dataclasses.dataclass(frozen=True)
class Program:
    """A function of what rows share and of one row, in steps that each use earlier results."""

    steps: list[tuple[int, list[int]]]
    outputs: list[tuple[str, int]]

    def __call__(self, shared: dict, row: dict) -> list:
        values = {"s": [row["s"]], "v": [row["v"], row["w"], shared["v"]], "m": [shared["m"]]}
        values["n"] = [row["n"]]
        for step, places in self.steps:
            kinds, function = STEPS[step]
            *operands, result = kinds.split()
            chosen = [values[kind][i] for kind, i in zip(operands, places, strict=True)]
            values[result].append(function(*chosen))
        return [values[kind][place] for kind, place in self.outputs]


def random_program(seed: int) -> Program:
    """A program of which every result depends on what was computed late."""
    random = np.random.default_rng(seed)
    counts, steps = dict(FIRST), []
    while len(steps) < LENGTH:
        step = int(random.integers(len(STEPS)))
        *operands, result = STEPS[step][0].split()
        # Late results are likelier to be used than early ones.
        places = [int(counts[kind] * random.random() ** 0.5) for kind in operands]
        steps.append((step, places))
        counts[result] += 1
    used = {x for step, places in steps for x in zip(STEPS[step][0].split(), places, strict=False)}
    results = {(kind, place) for kind, n in counts.items() for place in range(FIRST[kind], n)}
    return Program(steps, sorted(results - used))


# --- Rows, with numbers of all kinds


# None near 2^126: where a divisor is broadcast, XLA multiplies by its reciprocal, which is flushed
# to zero beyond that, so that `jax.vmap` is wrong.
SPECIAL = np.array(
    [np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 1e30, -1e30, 1e-30]
    + [np.finfo(np.float32).tiny, 1e20]
)
ROWS = 40


def random_rows(seed: int) -> tuple[dict, dict]:
    """What rows share, and the rows: tame ones, and as many with special numbers among theirs."""
    random = np.random.default_rng([seed, 1])
    shapes = {"s": (ROWS,), "v": (ROWS, 3), "w": (ROWS, 3)}
    rows: dict[str, Any] = {name: random.normal(size=shape) for name, shape in shapes.items()}
    for x in rows.values():
        is_special = random.random(x.shape) < 0.4
        is_special[: ROWS // 3] = False
        x[is_special] = random.choice(SPECIAL, x.shape)[is_special]
    rows = {name: jnp.asarray(x, jnp.float32) for name, x in rows.items()}
    rows["n"] = jnp.asarray(random.integers(0, 3, ROWS), jnp.int32)
    shared = {"v": random.normal(size=3), "m": random.normal(size=(3, 3))}
    return {name: jnp.asarray(x, jnp.float32) for name, x in shared.items()}, rows


# --- Values and derivatives


def derivatives(mapper: Callable, program: Callable, shared: dict, rows: dict) -> dict[str, Any]:
    """Values, jvp, vjp, and the jvp of the vjp; of numbers along the same directions for all."""
    floats = {name: x for name, x in rows.items() if name != "n"}

    def function(shared: dict, floats: dict) -> list:
        results = mapper(program, shared, {**floats, "n": rows["n"]})
        return [x for x in results if jnp.issubdtype(x.dtype, jnp.floating)]

    def waves(x):
        return jnp.cos(1.0 + jnp.arange(x.size)).reshape(x.shape)

    def pulled(shared: dict, floats: dict) -> tuple[dict, dict]:
        results, pull = jax.vjp(function, shared, floats)
        return pull([waves(x) for x in results])

    primals, tangents = (shared, floats), jax.tree.map(waves, (shared, floats))
    pushed = jax.jvp(function, primals, tangents)[1]
    slopes, second = jax.jvp(pulled, primals, tangents)
    values = mapper(program, shared, rows)
    return {"values": values, "jvp": pushed, "vjp": slopes, "jvp of vjp": second}


def by_vmap(program: Callable, shared: dict, rows: dict) -> list:
    return jax.vmap(program, (None, 0))(shared, rows)


def kind(x: np.ndarray) -> np.ndarray:
    """0 for a finite number, 1 and -1 for infinities, 2 for NaN."""
    return np.where(np.isnan(x), 2, np.where(np.isinf(x), np.sign(x), 0))


def only_values(mapper: Callable, program: Callable, shared: dict, rows: dict) -> dict[str, Any]:
    return {"values": mapper(program, shared, rows)}


def assert_agree(
    program: Callable, seed: int, quantities: Callable = derivatives, by_steps: bool = True
) -> None:
    """Compares all that `quantities` returns, compiled, with that of `jax.vmap`.

    No more is expected than `jax.vmap` itself keeps to when its numbers change in the sixth digit,
    or when it is computed step by step. Where even kinds change then, nothing is expected.
    """
    shared, rows = random_rows(seed)
    nudged = [
        jax.tree.map(lambda x: x * (1 + 1e-6) if x.dtype == jnp.float32 else x, tree)
        for tree in (shared, rows)
    ]
    reference = partial(quantities, by_vmap, program)
    compiled = jax.jit(reference)
    expected, others = compiled(shared, rows), [compiled(*nudged)]
    others += [reference(shared, rows)] if by_steps else []
    found = jax.jit(partial(quantities, map_rows, program))(shared, rows)
    assert jax.tree.map(jnp.shape, found) == jax.tree.map(jnp.shape, expected)
    certain, total = 0, 0
    for path, x in jax.tree.leaves_with_path(expected):
        get = lambda tree: np.asarray(_at(tree, path), np.float64)  # noqa: B023
        sure, wrong = differences(get(found), get(expected), [get(tree) for tree in others])
        places = [np.argwhere(wrong)[:3].tolist(), get(found)[wrong][:3], get(expected)[wrong][:3]]
        assert not wrong.any(), (jax.tree_util.keystr(path), *places)
        certain, total = certain + int(sure.sum()), total + x.size
    assert certain > 0.9 * total


def _at(tree: Any, path: tuple) -> Any:
    for key in path:
        tree = tree[key.idx if isinstance(key, jax.tree_util.SequenceKey) else key.key]
    return tree


def differences(
    found: np.ndarray, expected: np.ndarray, others: list[np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    """Where something is expected, and where a result differs from that."""
    certain = np.all([kind(x) == kind(expected) for x in others], axis=0)
    with np.errstate(all="ignore"):
        spread = np.max([np.abs(x - expected) for x in others], axis=0)
        far = ~(np.abs(found - expected) <= 3e-4 * (1 + np.abs(expected)) + 30 * spread)
    return certain, certain & np.where(kind(expected) == 0, far, kind(found) != kind(expected))


# --- Tests


@pytest.mark.parametrize("seed", range(2))
def test_random_program(seed):
    assert_agree(random_program(seed), seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 62))
def test_more_random_programs(seed):
    assert_agree(random_program(seed), seed)


def test_every_step_alone():
    """One program of all steps, each on the values that a program starts with."""
    steps, outputs, counts = [], [], dict(FIRST)
    for step, (kinds, _) in enumerate(STEPS):
        *operands, result = kinds.split()
        steps.append((step, [i % FIRST[kind] for i, kind in enumerate(operands)]))
        outputs.append((result, counts[result]))
        counts[result] += 1
    assert_agree(Program(steps, outputs), 0, only_values, by_steps=False)


def zero_product(x: list[Node], dtype: Any) -> Node | None:
    del dtype
    return next((node for node in x if node.is_constant and node.value == 0), None)


def zero_quotient(x: list[Node], dtype: Any) -> Node | None:
    del dtype
    return x[0] if x[0].is_constant and x[0].value == 0 else None


def same_operands(result: float) -> Callable:
    def rule(x: list[Node], dtype: Any) -> Node | None:
        node = Node("constant", (), dtype, False, np.asarray(result, dtype)[()], early=True)
        return node if x[0] is x[1] else None

    return rule


@pytest.mark.parametrize(
    ("operation", "rule", "function"),
    [
        ("mul", zero_product, lambda x: 0 * x),
        ("div", zero_quotient, lambda x: 0 / x),
        ("sub", same_operands(0), lambda x: x - x),
        ("div", same_operands(1), lambda x: x / x),
    ],
    ids=["0 x = 0", "0 / x = 0", "x - x = 0", "x / x = 1"],
)
def test_a_wrong_simplification_is_found(operation, rule, function, monkeypatch):
    program = lambda shared, row: [function(row["v"])]
    assert_agree(program, 0, only_values)
    monkeypatch.setitem(_RULES, operation, rule)
    with pytest.raises(AssertionError, match="values"):
        assert_agree(program, 0, only_values)
