"""The log of compilations says which function, how, and why."""

import logging

import jax
import jax.numpy as jnp
import pytest

import scenegraph as sg
from scenegraph.rows import _log, map_rows


def length(scale, row):
    return scale * jnp.linalg.norm(row)


def compile_map(scale, rows, function=length):
    jax.jit(lambda scale, rows: map_rows(function, scale, rows)).lower(scale, rows)


@pytest.fixture
def lines(caplog):
    """What was logged since it was last asked."""
    _log._last.clear()
    caplog.set_level(logging.INFO, sg.compile_log.name)

    def take():
        said = [record.getMessage() for record in caplog.records]
        caplog.clear()
        return said

    return take


@pytest.mark.parametrize(
    ("scale", "rows", "why"),
    [
        (jnp.ones(()), jnp.ones((7, 3)), "in another program"),
        (jnp.ones(()), jnp.ones((5, 4)), "shape of operand 1: (4,), before (3,)"),
        (jnp.ones((), int), jnp.ones((5, 3)), "dtype of operand 0: int32, before float32"),
        (1.0, jnp.ones((5, 3)), "in another program"),
        ([jnp.ones(()), jnp.ones(())], jnp.ones((5, 3)), "3 operands, before 2"),
    ],
)
def test_the_reason_is_named(lines, scale, rows, why):
    compile_map(jnp.ones(()), jnp.ones((5, 3)))
    [first] = lines()
    assert first.startswith(f"{__name__}.length: native, ")
    assert first.endswith("(first time)")
    one = lambda scale: scale[0] * scale[1] if isinstance(scale, list) else scale
    function = lambda scale, row: length(one(scale), row)
    function.__qualname__, function.__module__ = "length", __name__
    compile_map(scale, rows, function)
    [second] = lines()
    assert why in second


def test_another_static_value_and_derivatives_are_told_apart(lines):
    for power in (2, 3):
        function = lambda scale, row, power=power: scale * row**power
        compile_map(jnp.ones(()), jnp.ones((5, 3)), function)
    assert "another static value" in lines()[1]
    jax.jit(jax.grad(lambda s: jnp.sum(map_rows(length, s, jnp.ones((5, 3)))))).lower(1.0)
    assert "cotangent of tangent of" in lines()[-1]


def test_what_is_not_native_is_named(lines):
    compile_map(jnp.ones(()), jnp.ones((5, 3)), lambda s, row: s * jax.lax.digamma(row))
    assert "not native: digamma" in lines()[0]


def test_nothing_is_kept_where_nobody_listens(caplog):
    # Whatever an example of the documentation has set before.
    caplog.set_level(logging.WARNING, "scenegraph.compile")
    _log._last.clear()
    compile_map(jnp.ones(()), jnp.ones((5, 3)))
    assert not _log._last
