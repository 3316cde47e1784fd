"""Maps over rows and blocks compute what something needs, and nothing else."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.extend.core import ClosedJaxpr, jaxpr_as_fun
from jax.interpreters.partial_eval import dce_jaxpr

from scenegraph.rows import map_rows
from scenegraph.rowwise import map_blocks
from support.helpers import assert_close


ROWS = jnp.linspace(0.1, 1.3, 12).reshape(4, 3)
SCALE = jnp.float32(1.5)


def both(shared, row):
    """Two results, of which only one needs what is shared."""
    return jnp.tan(row), jnp.sum(shared * jnp.cosh(row))


def by_rows(shared, rows):
    return map_rows(both, shared, rows)


def by_blocks(shared, rows):
    return map_blocks(both, shared, rows, jnp.asarray(3))


def needed(function, *operands):
    """A function without what it computes and does not need, and its equations as text."""
    closed = jax.make_jaxpr(function)(*operands)
    jaxpr = ClosedJaxpr(dce_jaxpr(closed.jaxpr, True, True)[0], closed.consts)
    return lambda *x: jaxpr_as_fun(jaxpr)(*x)[0], str(jaxpr)


@pytest.mark.parametrize("mapped", [by_rows, by_blocks])
@pytest.mark.parametrize(("result", "rest"), [(0, "cosh"), (1, "tan ")])
def test_results_that_nothing_needs_are_not_computed(mapped, result, rest):
    function = lambda shared, rows: mapped(shared, rows)[result]
    smaller, text = needed(function, SCALE, ROWS)
    assert rest in str(jax.make_jaxpr(mapped)(SCALE, ROWS))
    assert rest not in text
    assert_close(jax.jit(smaller)(SCALE, ROWS), function(SCALE, ROWS), 1e-6)


@pytest.mark.parametrize("mapped", [by_rows, by_blocks])
def test_nothing_is_left_of_a_map_without_results_in_use(mapped):
    _, text = needed(lambda rows: (mapped(SCALE, rows), 2 * rows)[1], ROWS)
    assert "map" not in text


@pytest.mark.parametrize("mapped", [by_rows, by_blocks])
def test_gradients_leave_out_what_only_results_need(mapped):
    loss = lambda rows: jnp.sum(mapped(SCALE, rows)[1])
    gradient = jax.grad(loss)
    smaller, text = needed(gradient, ROWS)
    # d cosh(x) = sinh(x) dx, of which no `cosh` is left, and no `tan`.
    assert "sinh" in text
    assert "cosh" not in text
    assert "tan " not in text
    expected = np.asarray(1.5 * np.sinh(ROWS))
    expected[3:] *= mapped is by_rows
    assert_close(jax.jit(smaller)(ROWS), expected, 1e-5)
    assert_close(jax.jit(gradient)(ROWS), expected, 1e-5)


def test_derivatives_in_branches_leave_out_what_only_results_need():
    def branched(shared, row):
        wave = lambda x: jnp.sum(jnp.cosh(x) * shared)
        return jax.lax.cond(row[0] > 0.5, wave, lambda x: jnp.sum(x) * shared, row)

    mapped = lambda rows: map_blocks(branched, SCALE, rows, jnp.asarray(4))
    gradient = jax.grad(lambda rows: jnp.sum(mapped(rows)))
    _, text = needed(gradient, ROWS)
    assert "sinh" in text
    assert "cosh" not in text
    expected = np.where(np.asarray(ROWS)[:, :1] > 0.5, 1.5 * np.sinh(ROWS), 1.5)
    assert_close(jax.jit(gradient)(ROWS), expected, 1e-5)
