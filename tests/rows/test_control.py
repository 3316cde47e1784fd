"""Loops, branches, look-ups, sorts and half precision of a row are native, as by `jax.vmap`."""

import dataclasses
import logging
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from scenegraph.rows import map_rows


# --- Rows and tables


ROWS = 61
draw = np.random.default_rng(0)
X = draw.normal(size=(ROWS, 3)).astype(np.float32)
INDEX = draw.integers(-700, 1000, ROWS).astype(np.int32)
TABLE = draw.normal(size=(400, 4)).astype(np.float32)
SHORT = TABLE[:7]
ODD = X.copy()
ODD[::4, 0], ODD[1::4, 1], ODD[2::8, 2], ODD[::8, 1] = np.nan, np.inf, -np.inf, np.nan
ODD[3::8] = np.array([0.0, -0.0, 0.0], np.float32)


@dataclasses.dataclass(frozen=True)
class Case:
    """A function of what rows share and of a row, with its operands, and how it is differentiated.

    `ways` are `"vjp"`, `"jvp"` where there is no other, or none.
    """

    function: Callable
    shared: Any = 2.0
    rows: Any = dataclasses.field(default_factory=lambda: (X, INDEX))
    ways: tuple[str, ...] = ("vjp",)
    tolerance: float = 3e-5
    native: bool = True


FORWARD: dict[str, Any] = {"ways": ("jvp",)}
VALUES: dict[str, Any] = {"ways": ()}


def by_vmap(function: Callable, shared: Any, rows: Any) -> Any:
    return jax.vmap(function, (None, 0))(shared, rows)


def is_floating(x: Any) -> bool:
    return jnp.issubdtype(jnp.asarray(x).dtype, jnp.floating)


def waves(x: Any) -> Any:
    return jnp.cos(1.0 + jnp.arange(x.size, dtype=x.dtype)).reshape(x.shape)


def quantities(mapper: Callable, case: Case, shared: Any, rows: Any) -> dict[str, Any]:
    """Values and derivatives along the same directions for all mappers."""
    leaves, structure = jax.tree.flatten((shared, rows))
    places = [k for k, x in enumerate(leaves) if is_floating(x)]

    def floats(*some: Any) -> list[Any]:
        whole = list(leaves)
        for place, x in zip(places, some, strict=True):
            whole[place] = x
        results = mapper(case.function, *jax.tree.unflatten(structure, whole))
        return [x for x in jax.tree.leaves(results) if is_floating(x)]

    points = [jnp.asarray(leaves[k]) for k in places]
    found = {"values": mapper(case.function, shared, rows)}
    if "jvp" in case.ways:
        found["jvp"] = jax.jvp(floats, points, [waves(x) for x in points])[1]
    if "vjp" in case.ways:
        results, pull = jax.vjp(floats, *points)
        found["vjp"] = pull([waves(x) for x in results])
    return found


def assert_close(found: Any, expected: Any, tolerance: float) -> None:
    """Compares numbers relatively to the largest that is finite."""
    for x, y in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        assert x.shape == y.shape and x.dtype == y.dtype
        x, y = np.asarray(x), np.asarray(y)
        if not is_floating(x):
            np.testing.assert_array_equal(x, y)
            continue
        x, y = x.astype(np.float64), y.astype(np.float64)
        size = np.max(np.abs(y), initial=1.0, where=np.isfinite(y))
        np.testing.assert_allclose(x, y, rtol=tolerance, atol=tolerance * size)


def assert_agrees(case: Case, caplog: pytest.LogCaptureFixture) -> None:
    to_jax = lambda tree: jax.tree.map(jnp.asarray, tree)
    shared, rows = to_jax(case.shared), to_jax(case.rows)
    with caplog.at_level(logging.INFO, "scenegraph.compile"):
        found = jax.jit(lambda *x: quantities(map_rows, case, *x))(shared, rows)
    assert "native" in caplog.text
    assert ("not native" not in caplog.text) == case.native, caplog.text
    expected = jax.jit(lambda *x: quantities(by_vmap, case, *x))(shared, rows)
    for name in expected:
        assert_close(found[name], expected[name], case.tolerance)


# --- Loops


def depth_three(shared, row):
    x, i = row

    def inner(k, c):
        return 0.7 * c + 0.2 * jnp.sin(c + shared[k + i % 3, :3])

    def middle(j, c):
        return lax.fori_loop(0, j + 1, inner, c) + 0.1 * shared[j, 1]

    return lax.fori_loop(0, 3 + i % 4, lambda k, c: lax.fori_loop(k, 4, middle, c), x)


def uniform_outside(shared, row):
    """A uniform loop around one of rows, with invariant variables that are carried."""

    def turn(carry):
        k, c, v, w = carry
        c = lax.while_loop(lambda c: jnp.sum(c) > k, lambda c: 0.5 * c - 0.1 * w, c + v)
        return k + 1, c, v, w

    return lax.while_loop(lambda c: c[0] < 4, turn, (0, row[0], row[0] * shared, shared))


def stops_at_once(shared, row):
    return lax.while_loop(lambda c: c[0] > 1e9, lambda c: c * shared, row[0])


def never_for_some(shared, row):
    return lax.fori_loop(row[1] % 3, 2, lambda k, c: jnp.sin(c * shared) + k, row[0])


def swapped(shared, row):
    """Variables change places, so that the next ones need all old ones."""
    a, b, c = row[0]
    turn = lambda k, x: (x[1], 0.9 * x[2], x[0] + shared)
    return lax.fori_loop(0, row[1] % 5, turn, (a, b, c))


def integers_and_flags(shared, row):
    def turn(c):
        n, flag, bits = c
        return jnp.where(n % 2 == 0, n // 2, 3 * n + 1), ~flag, bits ^ (n.astype(jnp.uint32) << 3)

    start = jnp.abs(row[1]) % 50 + 1, row[0][0] > 0, jnp.uint32(7)
    return lax.while_loop(lambda c: c[0] != 1, turn, start)


def not_finite(shared, row):
    """Rows with NaN or infinities never end the others' loops, nor theirs."""
    turn = lambda c: (c[0] + 1, c[1] * shared + row[0])
    return lax.while_loop(lambda c: (c[0] < 20) & (c[1][0] < 50.0), turn, (0, row[0]))


def marched(shared, row):
    x, i = row

    def turn(c):
        k, y, near = c
        y = jnp.abs(y + 0.5 * shared[(k * 7 + i) % 400, :3])
        return k + 1, y, near | (y[0] < 0.1)

    go = lambda c: (c[0] < 30) & (c[1][1] < 2.5) & ~c[2]
    return lax.while_loop(go, turn, (0, x, jnp.bool_(False)))


def sum_in_a_loop(shared, row):
    """Loops of a fixed length have cotangents of tables within."""
    return lax.fori_loop(
        0, 5, lambda k, c: 0.5 * c + jnp.sin(c) * shared[(row[1] + k) % 400, 0], 0.3
    )


LOOPS = {
    "while": Case(
        lambda s, r: lax.while_loop(
            lambda c: c[0] < 10 + 3 * r[0][0],
            lambda c: (c[0] + 1.0, c[1] * 0.9 + s * r[0]),
            (0.0, r[0]),
        ),
        **FORWARD,
    ),
    "fori long": Case(
        lambda s, r: lax.fori_loop(0, 300, lambda k, c: c * 0.9 + s * jnp.sin(r[0] + k), r[0]),
        **VALUES,
    ),
    "fori dynamic": Case(
        lambda s, r: lax.fori_loop(0, r[1] % 9, lambda k, c: c * 0.9 + s * r[0] * k, r[0]),
        **FORWARD,
    ),
    "fori unrolled": Case(
        lambda s, r: lax.fori_loop(0, 3, lambda k, c: jnp.sin(c) + s * r[0] * k, r[0])
    ),
    "fori none": Case(lambda s, r: lax.fori_loop(0, 0, lambda k, c: c * s, r[0])),
    "shared trips": Case(
        lambda s, r: lax.fori_loop(0, s[1], lambda k, c: c * 0.9 + s[0], r[0]),
        (0.3, np.int32(6)),
        **FORWARD,
    ),
    "depth three": Case(depth_three, TABLE, **FORWARD),
    "uniform outside": Case(uniform_outside, 0.5, **FORWARD),
    "stops at once": Case(stops_at_once, **FORWARD),
    "never for some": Case(never_for_some, **FORWARD),
    "swapped": Case(swapped, **FORWARD),
    "integers and flags": Case(integers_and_flags, **VALUES),
    "not finite": Case(not_finite, 1.1, (ODD, INDEX), **VALUES),
    "marched": Case(marched, TABLE, **FORWARD),
    "sum in a loop": Case(sum_in_a_loop, TABLE),
    "loop in a map": Case(
        lambda s, r: jax.vmap(
            lambda x, n: lax.fori_loop(0, n, lambda k, c: 0.5 * c + s * k, x), (0, None)
        )(r[0], r[1] % 4),
        **FORWARD,
    ),
    "loops in a map": Case(
        lambda s, r: jax.vmap(
            lambda x, y: lax.while_loop(
                lambda c: c[0] > 0.2, lambda c: (0.5 * c[0], c[1] + s * y[0] + c[0]), (x, y)
            ),
            (0, None),
        )(r[0], r[0][:2]),
        **FORWARD,
    ),
    "own table": Case(
        lambda s, r: lax.fori_loop(0, r[1] % 6, lambda k, c: 0.5 * c + r[0][k % 3] * s, 0.0),
        **FORWARD,
    ),
    "updates in a loop": Case(
        lambda s, r: lax.fori_loop(
            0, r[1] % 6, lambda k, c: c.at[k].add(s * r[0][k % 3]), jnp.zeros(5)
        ),
        **FORWARD,
    ),
}


# --- Scans


SCANS = {
    "xs of a table": Case(
        lambda s, r: lax.scan(lambda c, y: (c * 0.9 + y[:3] * r[0], None), r[0], s)[0],
        TABLE,
        **FORWARD,
    ),
    "reverse": Case(
        lambda s, r: lax.scan(lambda c, y: (c * 0.9 + y[:3] * r[0], None), r[0], s, reverse=True)[
            0
        ],
        TABLE,
        **FORWARD,
    ),
    "short": Case(
        lambda s, r: lax.scan(lambda c, y: (c * 0.9 + y[:3] * r[0], c), r[0], s), SHORT[:4]
    ),
    "short reverse": Case(
        lambda s, r: lax.scan(lambda c, y: (jnp.sin(c) + y[0], c * y[1]), r[0], s, reverse=True),
        SHORT[:4],
    ),
    "own xs": Case(lambda s, r: lax.scan(lambda c, y: (c * y + s, c + y), 1.0, r[0])),
    "several xs": Case(
        lambda s, r: lax.scan(
            lambda c, y: (c + y[0][0] * y[1], (c, y[0])), 1.0, (s[:3], r[0]), reverse=True
        ),
        SHORT,
    ),
    "no carry": Case(
        lambda s, r: lax.scan(lambda c, y: (c, jnp.sin(y) * r[0]), None, s[:3, :3])[1], SHORT
    ),
    "no xs": Case(lambda s, r: lax.scan(lambda c, _: (0.5 * c + s, c), r[0], None, length=4)),
    "length zero": Case(
        lambda s, r: lax.scan(lambda c, y: (c * s, c + y), r[0], jnp.zeros((0, 3)))
    ),
    "map": Case(lambda s, r: lax.map(lambda y: jnp.sum(y[:3] * r[0]), s), SHORT),
    "associative": Case(lambda s, r: lax.associative_scan(lambda x, y: x * s + y, r[0])),
    "scan in a loop": Case(
        lambda s, r: lax.fori_loop(
            0,
            r[1] % 4,
            lambda k, c: lax.scan(lambda d, y: (0.5 * d + 0.3 * jnp.sin(y[:3]), None), c, s)[0],
            r[0],
        ),
        TABLE[:90],
        **FORWARD,
    ),
}


# --- Branches


def chosen(shared, row):
    x, i = row
    cases = [
        lambda q: jnp.sin(q * 3) + jnp.cos(q * 7) / jnp.sqrt(1 + q * q) * jnp.tanh(q),
        lambda q: jnp.arctan(q) * shared[3, 0] / jnp.sqrt(2 + q * q),
        lambda q: shared[i, :3] * q,
        lambda q: lax.while_loop(lambda c: jnp.sum(c * c) > 0.1, lambda c: c * 0.5, q),
    ]
    return lax.switch(i % 6 - 1, cases, x)


def nested(shared, row):
    x, i = row
    inner = lambda q: lax.cond(q[1] > 0, lambda: jnp.exp(jnp.sin(q) * shared), lambda: q * shared)
    outer = lambda q: jnp.cos(jnp.tanh(q * 2) + q) * jnp.sqrt(1 + q * q)
    return lax.cond(x[0] > 0, inner, outer, jnp.tanh(x) * (1 + i % 3))


def of_many_types(shared, row):
    x, i = row
    heavy = lambda: (jnp.sum(jnp.sin(jnp.exp(jnp.cos(x)))) * shared, i // 7, x[0] > x[1])
    return lax.cond(i > 0, heavy, lambda: (0.0, -i, jnp.bool_(True)))


def cond_in_a_loop(shared, row):
    x, i = row

    def turn(k, c):
        heavy = lambda: 0.3 * jnp.sin(jnp.exp(jnp.cos(c * 3)) + shared[k, :3])
        return lax.cond((k + i) % 2 == 0, heavy, lambda: c + jnp.arctan(jnp.tanh(c) * c))

    return lax.fori_loop(0, 3 + i % 3, turn, x)


def loop_in_cond(shared, row):
    x, i = row
    loop = lambda: lax.fori_loop(0, i % 7, lambda k, c: 0.5 * c + jnp.sin(shared[k, :3] * x), x)
    return lax.cond(x[0] > 0, loop, lambda: lax.fori_loop(0, 40, lambda k, c: 0.9 * c + k, x))


def shares_work(shared, row):
    """What a branch computes is needed after it, too, and what both cases need before."""
    x = row[0]
    both = jnp.exp(jnp.sin(x)) * shared
    heavy = lambda: jnp.cos(jnp.tanh(both * 3) + jnp.log(1 + both * both)) * jnp.sin(x)
    y = lax.cond(x[0] > 0, heavy, lambda: jnp.log(1 + both * both))
    return y + jnp.cos(jnp.tanh(both * 3) + jnp.log(1 + both * both)), both


BRANCHES = {
    "cond": Case(
        lambda s, r: lax.cond(
            r[0][0] > 0,
            lambda q: jnp.exp(jnp.sin(q * 3)) + jnp.cos(q * 7) / jnp.sqrt(1 + q * q) * s,
            lambda q: jnp.arctan(q) * s,
            r[0],
        )
    ),
    "uniform cond": Case(
        lambda s, r: lax.cond(
            s > 1, lambda q: jnp.exp(jnp.sin(q * 3) + jnp.tanh(q)) * s, jnp.sin, r[0]
        ),
        np.float32(2),
    ),
    "uniform switch": Case(
        lambda s, r: [
            lax.switch(k, [jnp.sin, lambda q: jnp.exp(jnp.tanh(q) + jnp.cos(q)), jnp.tanh], r[0])
            for k in (s[0], s[1], s[2])
        ],
        np.array([-3, 1, 77], np.int32),
    ),
    "small switch": Case(
        lambda s, r: lax.switch(r[1] % 9 - 4, [jnp.negative, jnp.abs, lambda q: q * s], r[0])
    ),
    "switch": Case(chosen, TABLE, **FORWARD),
    "nested": Case(nested, np.float32(0.5)),
    "of many types": Case(of_many_types, np.float32(0.5)),
    "known": Case(lambda s, r: lax.cond(True, jnp.sin, jnp.cos, r[0])),
    "in a map": Case(
        lambda s, r: jax.vmap(lambda q: lax.cond(q > 0, lambda: jnp.sin(q), lambda: q * s))(r[0])
    ),
    "in a loop": Case(cond_in_a_loop, TABLE, **FORWARD),
    "loops within": Case(loop_in_cond, TABLE, **VALUES),
    "shares work": Case(shares_work),
    "table sums": Case(
        lambda s, r: lax.cond(
            r[0][0] > 0,
            lambda: jnp.sin(s[r[1], :3] * r[0]) + jnp.cos(s[r[1] % 5, 0] * 3),
            lambda: jnp.tanh(s[0, 0] * r[0]) * s[-r[1], 1],
        ),
        TABLE,
    ),
}


# --- Look-ups


NUMBERS = np.concatenate(
    [np.linspace(-30, 500, ROWS - 5), [np.nan, np.inf, -np.inf, 1e20, -1e20]]
).astype(np.float32)
SIZED = {"rows": (X, INDEX % 300), "ways": ("vjp",)}


def look_up_as(kind: str) -> Callable:
    return lambda s, r: s[(r[1] % 300).astype(kind)] * r[0][0]


LOOK_UPS = {
    "out of range": Case(lambda s, r: s[r[1]] * r[0][0], TABLE),
    "two indices": Case(lambda s, r: s[r[1], r[1] % 4] * r[0], TABLE),
    "small": Case(lambda s, r: s[r[1] % 9] * r[0][1], SHORT),
    "one row": Case(lambda s, r: s[r[1]] * r[0][1], TABLE[:1]),
    "one number": Case(lambda s, r: s[r[1]] * r[0][1], TABLE[0, :1]),
    "fill": Case(lambda s, r: s.at[r[1]].get(mode="fill", fill_value=3.0) * r[0][0], TABLE),
    "fill with nothing said": Case(lambda s, r: s.at[r[1]].get(mode="fill"), TABLE),
    "fill integers": Case(
        lambda s, r: (s[0].at[r[1]].get(mode="fill"), s[1].at[r[1]].get(mode="fill")),
        (np.arange(300, dtype=np.int32), np.arange(300) % 3 == 0),
        **VALUES,
    ),
    "clip": Case(lambda s, r: s.at[r[1]].get(mode="clip") * r[0][0], TABLE),
    "promise": Case(lambda s, r: s.at[r[1] % 400].get(mode="promise_in_bounds") * r[0][0], TABLE),
    "no wrap": Case(
        lambda s, r: s.at[r[1]].get(mode="fill", wrap_negative_indices=False, fill_value=0.0),
        TABLE,
    ),
    "of floats": Case(lambda s, r: s[r[0].astype(int)], TABLE, (NUMBERS, INDEX)),
    "of nan": Case(
        lambda s, r: s[jnp.floor(r[0]).astype(jnp.uint32)], TABLE, (NUMBERS, INDEX), **VALUES
    ),
    "uint8": Case(look_up_as("uint8"), TABLE, **SIZED),
    "int8": Case(look_up_as("int8"), TABLE, **SIZED),
    "int16": Case(look_up_as("int16"), TABLE, **SIZED),
    "uint32": Case(look_up_as("uint32"), TABLE, **SIZED),
    "uint8 of a short table": Case(lambda s, r: s[r[1].astype(jnp.uint8)] * r[0][0], SHORT),
    "large uint32": Case(lambda s, r: s[jnp.uint32(4294967000) + r[1].astype(jnp.uint32)], TABLE),
    "own array": Case(lambda s, r: r[0][r[1] % 3] * s),
    "own array out of range": Case(lambda s, r: r[0][r[1]] * s),
    "own array filled": Case(lambda s, r: r[0].at[r[1] % 7].get(mode="fill", fill_value=2.0) * s),
    "own matrix": Case(lambda s, r: jnp.outer(r[0], r[0])[r[1] % 3, r[1] % 5 - 1] * s),
    "several at once": Case(
        lambda s, r: s[jnp.stack([r[1], r[1] + 1, 2 * r[1]]) % 400, 1:3] * r[0][:, None], TABLE
    ),
    "columns": Case(lambda s, r: s[:, r[1] % 4] * r[0][0], SHORT),
    "take along an axis": Case(
        lambda s, r: jnp.take_along_axis(r[0], jnp.argsort(r[0])[::-1], axis=0) * s
    ),
    "slice": Case(lambda s, r: lax.dynamic_slice(s, (r[1], 1), (2, 3)) * r[0], TABLE),
    "slice of one's own": Case(
        lambda s, r: lax.dynamic_slice(jnp.concatenate([r[0], r[0] * s]), (r[1],), (2,))
    ),
    "interpolation": Case(
        lambda s, r: jnp.interp(r[0][0], jnp.linspace(-1.0, 1.0, 9), s[:9, 0]), TABLE
    ),
    "searched": Case(lambda s, r: jnp.searchsorted(jnp.sort(s[:, 0]), r[0]), TABLE, **VALUES),
    "of flags": Case(lambda s, r: s[r[1]], np.arange(300) % 3 == 0, **VALUES),
    "looked up twice": Case(
        lambda s, r: s[0][s[1][r[1]]] * r[0][0],
        (TABLE, draw.permutation(400).astype(np.int32)),
    ),
    "of another type": Case(
        lambda s, r: s.astype(jnp.float32)[r[1]] * r[0][0], TABLE.astype(np.float16), tolerance=2e-3
    ),
    "of half precision": Case(
        lambda s, r: (s[r[1]] * r[0][0].astype(s.dtype)).astype(jnp.float32),
        TABLE.astype(np.float16),
        tolerance=2e-3,
        native=False,
    ),
    "own slice": Case(
        lambda s, r: jnp.split(
            lax.dynamic_slice(jnp.outer(r[0], r[0] * s), (r[1] % 3, 0), (1, 3))[0], 3
        )
    ),
    "vmap within": Case(
        lambda s, r: jax.vmap(lambda k, y: s[k, 1] * y)(r[1] + jnp.arange(3), r[0]), TABLE
    ),
}


# --- Updates


UPDATES = {
    "set": Case(lambda s, r: jnp.ones(5).at[r[1] % 8].set(s * r[0][0])),
    "add": Case(lambda s, r: jnp.zeros(5).at[r[1] % 8 - 2].add(s * r[0][0])),
    "max": Case(lambda s, r: jnp.zeros(5).at[r[1] % 5].max(s * r[0][0]), ways=("jvp",)),
    "min": Case(lambda s, r: jnp.zeros(5).at[r[1] % 5].min(s * r[0][0]), ways=("jvp",)),
    "mul": Case(lambda s, r: (r[0] + 2).at[r[1] % 3].multiply(s * r[0][0]), ways=("jvp",)),
    "drop": Case(lambda s, r: jnp.ones(4).at[r[1]].set(2.0 * r[0][0], mode="drop")),
    "clip": Case(lambda s, r: jnp.ones(4).at[r[1]].set(2.0 * r[0][0], mode="clip")),
    "same place twice": Case(
        lambda s, r: jnp.ones(4).at[jnp.stack([r[1] % 4, 2, r[1] % 3])].add(r[0])
    ),
    "row of a matrix": Case(lambda s, r: jnp.ones((3, 3)).at[r[1] % 3].set(r[0] * s)),
    "column of a matrix": Case(lambda s, r: jnp.ones((3, 3)).at[:, r[1] % 3].add(r[0] * s)),
    "of a known place": Case(lambda s, r: r[0].at[1].set(s).at[-1].add(2.0)),
    "of integers": Case(lambda s, r: jnp.arange(6).at[r[1] % 6].add(r[1]), **VALUES),
    "of a table's row": Case(lambda s, r: s[r[1] % 7].at[r[1] % 4].set(r[0][0]), SHORT),
    "slice": Case(lambda s, r: lax.dynamic_update_slice(jnp.zeros(6), r[0] * s, (r[1] % 9 - 2,))),
    "slice of a matrix": Case(
        lambda s, r: lax.dynamic_update_slice(
            jnp.outer(r[0], r[0]), r[0][None, :2] * s, (r[1] % 5, r[1] % 2)
        )
    ),
    "histogram": Case(
        lambda s, r: jnp.zeros(8, int).at[jnp.abs(r[0] * 3).astype(int)].add(1), **VALUES
    ),
}


# --- Sorts, cumulative operations, movements, functions


SORTS = {
    "sort": Case(lambda s, r: jnp.sort(r[0]) * s),
    "argsort": Case(
        lambda s, r: (jnp.argsort(-r[0]), jnp.argsort(r[0], descending=True)), **VALUES
    ),
    "nan": Case(
        lambda s, r: (jnp.sort(r[0]), jnp.argsort(r[0]), jnp.sort(r[0], descending=True)),
        2.0,
        (ODD, INDEX),
        **VALUES,
    ),
    "several keys": Case(
        lambda s, r: lax.sort(
            (jnp.round(jnp.concatenate([r[0], r[0]])), r[1] % jnp.arange(2, 8), jnp.arange(6)),
            num_keys=2,
        ),
        **VALUES,
    ),
    "stable": Case(
        lambda s, r: lax.sort((r[1] % jnp.arange(1, 10) % 3, jnp.arange(9)), num_keys=1), **VALUES
    ),
    "integers": Case(
        lambda s, r: (
            jnp.sort(r[1] % jnp.arange(1, 9) - 2),
            jnp.sort(r[1].astype(jnp.uint32) * jnp.arange(5, dtype=jnp.uint32)),
        ),
        **VALUES,
    ),
    "axis": Case(lambda s, r: jnp.sort(jnp.outer(r[0], r[0][::-1]), axis=0) * s),
    "top_k": Case(lambda s, r: lax.top_k(r[0] * s, 2)),
    "top_k of nan": Case(lambda s, r: lax.top_k(r[0] + 1, 2), 2.0, (ODD, INDEX), **VALUES),
    "extremes": Case(lambda s, r: (jnp.argmin(r[0]), jnp.argmax(r[0])), **VALUES),
    "extremes of nan": Case(
        lambda s, r: (jnp.argmin(r[0]), jnp.argmax(r[0]), jnp.nanargmin(r[0])),
        2.0,
        (ODD, INDEX),
        **VALUES,
    ),
    "median": Case(lambda s, r: jnp.median(jnp.concatenate([r[0], r[0][:1] * s]))),
    "cumulative": Case(
        lambda s, r: [
            f(r[0] + s, reverse=reverse)
            for f in (lax.cumsum, lax.cumprod, lax.cummax, lax.cummin)
            for reverse in (False, True)
        ]
    ),
    "cumulative along an axis": Case(
        lambda s, r: lax.cumsum(jnp.outer(r[0], r[0] * s), axis=0, reverse=True)
    ),
    "logcumsumexp": Case(lambda s, r: lax.cumlogsumexp(r[0] * s), native=False),
    "pad": Case(
        lambda s, r: (
            lax.pad(r[0], s, [(2, -1, 1)]),
            lax.pad(r[0], 0.0, [(-1, 3, 2)]),
            lax.pad(jnp.outer(r[0], r[0]), s, [(-1, 0, 0), (1, -2, 1)]),
            lax.pad(r[0], s, [(-4, 5, 0)]),
        ),
        np.float32(2),
    ),
    "integer exponents": Case(
        lambda s, r: (r[0] ** s[1], jnp.power(2.0, r[1] % 5 - 2), r[0] ** 3, r[0] ** -1),
        (1.0, np.array([3, 2, -1])),
    ),
    "integer powers": Case(lambda s, r: (r[1] ** 3, r[1] ** (r[1] % 4)), **VALUES),
    "erf_inv": Case(lambda s, r: lax.erf_inv(jnp.tanh(r[0]))),
    "erf_inv at ends": Case(
        lambda s, r: lax.erf_inv(r[0]),
        2.0,
        (np.array([1, -1, 1.5, 0, -0.0, np.nan, np.inf, 0.99999, 1e-30], np.float32),),
        **VALUES,
    ),
    "lgamma": Case(lambda s, r: (lax.lgamma(jnp.abs(r[0]) + 3), lax.erfc(r[0])), **VALUES),
    "split": Case(lambda s, r: jnp.split(jnp.outer(r[0], r[0]), [1], axis=1)),
}
CASES = {
    **{f"loop: {name}": case for name, case in LOOPS.items()},
    **{f"scan: {name}": case for name, case in SCANS.items()},
    **{f"branch: {name}": case for name, case in BRANCHES.items()},
    **{f"look-up: {name}": case for name, case in LOOK_UPS.items()},
    **{f"update: {name}": case for name, case in UPDATES.items()},
    **{f"sort: {name}": case for name, case in SORTS.items()},
}


# Much like others.
SELDOM = """loop: fori none|loop: shared trips|loop: stops at once|scan: short|scan: several xs
scan: no carry|scan: no xs|scan: map|scan: associative|branch: cond|branch: known|branch: in a map
branch: of many types|look-up: small|look-up: one number|look-up: clip|look-up: promise
look-up: no wrap|look-up: int8|look-up: int16|look-up: uint32|look-up: columns|look-up: own array
look-up: interpolation|look-up: take along an axis|look-up: vmap within|update: min|update: clip
update: of a known place|update: of a table's row|update: row of a matrix|update: histogram
sort: axis|sort: median|sort: split|sort: extremes|sort: argsort|sort: cumulative along an axis"""
SELDOM = SELDOM.replace("\n", "|").split("|")
MARKED = [pytest.param(x, marks=[pytest.mark.slow] if x in SELDOM else []) for x in CASES]


@pytest.mark.parametrize("name", MARKED)
def test_agrees_with_vmap(name, caplog):
    assert_agrees(CASES[name], caplog)


WIDE = {
    "int64": Case(lambda s, r: s[r[1].astype(jnp.int64)] * r[0][0], TABLE),
    "huge": Case(lambda s, r: s[r[1].astype(jnp.int64) * 2**40], TABLE),
    "uint64": Case(lambda s, r: s[r[1].astype(jnp.uint64)] * r[0][0], TABLE),
    "loop": Case(
        lambda s, r: lax.fori_loop(
            0, r[1].astype(jnp.int64) % 9, lambda k, c: 0.5 * c + s[k, 0] * r[0], r[0]
        ),
        TABLE.astype(np.float64),
        (X.astype(np.float64), INDEX),
        tolerance=1e-12,
        **FORWARD,
    ),
    "functions": Case(
        lambda s, r: (lax.erf_inv(jnp.tanh(r[0])), lax.logistic(r[0] * s), jnp.sort(r[0])),
        2.0,
        (X.astype(np.float64),),
        tolerance=1e-12,
    ),
}


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("name", WIDE)
def test_agrees_with_vmap_in_double_precision(name, caplog):
    assert_agrees(WIDE[name], caplog)


def test_erf_inv_ends_within_a_row_of_one_number(caplog):
    ends = np.array([[1.0], [-1], [1.5], [0], [np.nan]], np.float32)
    assert_agrees(Case(lambda s, r: lax.erf_inv(r), 2.0, ends, **VALUES), caplog)


# --- Half precision


HALVES = {
    "arithmetic": lambda s, r: (r[0] * 2 + s[0], r[1] / 3 - s[0], -r[0], r[0] * r[1]),
    "functions": lambda s, r: (jnp.sin(r[0]), jnp.exp(r[1]), jnp.sqrt(jnp.abs(r[0])), r[0] ** 3),
    "comparisons": lambda s, r: (r[0] > 0, r[0] < r[1], jnp.maximum(r[0], s[0]), jnp.sort(r[0])),
    "conversions": lambda s, r: (
        r[0].astype(jnp.float32),
        r[1].astype(jnp.bfloat16),
        r[1].astype(jnp.float16),
        (r[0] + s[0]).astype(jnp.int32),
        jnp.arange(3).astype(r[0].dtype) * r[0],
    ),
    "look-ups": lambda s, r: (s[r[0][0].astype(int)], s[:3] * r[0], r[0][jnp.argmax(r[1])]),
    "loops": lambda s, r: lax.fori_loop(0, 5, lambda k, c: c * s[0] + r[0], r[1]),
    "branches": lambda s, r: lax.cond(r[0][0] > 0, lambda: r[0] * s[0], lambda: jnp.tanh(r[1])),
}


@pytest.mark.parametrize("kind", ["float16", "bfloat16"])
def test_half_precision_is_rounded_once(kind, caplog):
    kind = jnp.dtype(kind)
    x, y = jnp.asarray(X, kind), jnp.asarray(X[::-1], kind)
    table = jnp.asarray(TABLE[:40, 0] * 0.3, kind)
    program = lambda s, r: {name: function(s, r) for name, function in HALVES.items()}
    with caplog.at_level(logging.INFO, "scenegraph.compile"):
        found = jax.jit(lambda *v: map_rows(program, *v))(table, (x, y))
    assert "native" in caplog.text and "not native" not in caplog.text
    expected = jax.jit(lambda *v: by_vmap(program, *v))(table, (x, y))
    for (path, a), b in zip(
        jax.tree.leaves_with_path(found), jax.tree.leaves(expected), strict=True
    ):
        assert a.dtype == b.dtype and a.shape == b.shape, path
        unit = float(jnp.finfo(a.dtype if is_floating(a) else kind).eps)
        a, b = (np.asarray(z, np.float64) for z in (a, b))
        most = 4 if "loops" in str(path) else 2
        np.testing.assert_allclose(a, b, rtol=most * unit, atol=most * unit, err_msg=str(path))


def test_seldom_cases_are_cases():
    assert set(SELDOM) <= set(CASES)
