"""Constants are folded as XLA computes them, and without compiling anything."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from scenegraph.rows import map_rows
from scenegraph.rows._constants import evaluate


FLOATS = np.array([0.0, -0.0, 1.5, -2.0, np.inf, -np.inf, np.nan, 3e37], np.float32)
INTEGERS = np.array([0, 1, -7, 2**31 - 1, -(2**31), 5, 3, 2], np.int32)
BOOLEANS = np.array([True, False, False, True, True, False, True, False])
VALUES = {"float": FLOATS, "integer": INTEGERS, "boolean": BOOLEANS}
NUMBERS, WHOLE = ("float", "integer"), ("integer", "boolean")
UNARY = [
    *((jnp.abs, kind) for kind in NUMBERS),
    *((jnp.negative, kind) for kind in NUMBERS),
    *((lax.square, kind) for kind in NUMBERS),
    *((lax.bitwise_not, kind) for kind in WHOLE),
    *((function, "float") for function in (lax.ceil, lax.floor, lax.is_finite, lax.sqrt)),
]
BINARY = [
    *((x, kind) for x in (lax.eq, lax.ne, lax.lt, lax.le, lax.gt, lax.ge) for kind in VALUES),
    *((x, kind) for x in (lax.max, lax.min) for kind in VALUES),
    *((x, kind) for x in (lax.add, lax.sub, lax.mul) for kind in NUMBERS),
    *((x, kind) for x in (lax.bitwise_and, lax.bitwise_or, lax.bitwise_xor) for kind in WHOLE),
    (lax.div, "float"),
]


def check(function, *values):
    for equation in jax.make_jaxpr(function)(*values).eqns:
        avals = [x.aval for x in equation.outvars]
        folded = evaluate(equation.primitive, values, equation.params, avals)
        expected = equation.primitive.bind(*map(jnp.asarray, values), **equation.params)
        expected = expected if equation.primitive.multiple_results else [expected]
        for mine, theirs in zip(folded, expected, strict=True):
            assert mine.dtype == theirs.dtype
            np.testing.assert_array_equal(mine, theirs)


@pytest.mark.parametrize(("function", "kind"), UNARY)
def test_of_one_operand(function, kind):
    check(function, VALUES[kind])


@pytest.mark.parametrize(("function", "kind"), BINARY)
def test_of_all_pairs(function, kind):
    check(function, *(part.reshape(-1) for part in np.meshgrid(VALUES[kind], VALUES[kind])))


@pytest.mark.parametrize("function", [jnp.sum, jnp.prod, jnp.max, jnp.min])
def test_of_reductions(function):
    check(lambda x: function(x, axis=(0, 2)), FLOATS[2:4].repeat(6).reshape(2, 3, 2))


def test_of_quotients_of_integers():
    check(lax.div, np.array([7, -7, 8], np.int32), np.array([2, 2, -3], np.int32))


@pytest.mark.parametrize("to", [np.float32, np.int32, np.uint8, np.bool_, np.float16])
@pytest.mark.parametrize("kind", VALUES)
def test_of_conversions(kind, to):
    check(lambda x: lax.convert_element_type(x, to), VALUES[kind])


def test_of_selections_and_counts():
    check(lax.select_n, BOOLEANS, FLOATS, FLOATS[::-1].copy())
    check(lax.select_n, np.array(True), FLOATS, FLOATS + 1)
    check(lambda: lax.iota(np.int32, 4))
    check(lambda: lax.broadcasted_iota(np.float32, (2, 3), 1))


def test_nothing_is_compiled_for_constants():
    def of_row(_, x):
        table = jnp.broadcast_to(jnp.arange(6.0).reshape(2, 3)[:, ::-1], (4, 2, 3))
        inner = jnp.where(table > 2, 2 * table, -table) + jnp.pad(
            jnp.ones((2, 2)), ((0, 0), (1, 0))
        )
        return x * jnp.sum(inner[:, 1])

    compiled = []
    listen = lambda name, seconds, **_: compiled.append(name)
    rows = jnp.arange(8.0)
    traced = jax.jit(lambda rows: map_rows(of_row, None, rows)).trace(rows)
    jax.monitoring.register_event_duration_secs_listener(listen)
    try:
        traced.lower()
    finally:
        jax.monitoring.unregister_event_duration_listener(listen)
    assert not [name for name in compiled if "backend_compile" in name]
