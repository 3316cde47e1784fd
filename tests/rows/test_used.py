"""Rows that are not used: zeros, and no derivatives, whatever the function says of them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import scenegraph as sg


TABLE = jnp.arange(120.0).reshape(40, 3) / 7 + 0.1


def look_up(table, row):
    """Has NaN, also as derivatives, where the row is zero."""
    place, x = row
    return jnp.sqrt(x) * table[place], {"whole": place + 1, "part": jnp.log(x) / x}


def mapped(table, x, used, places):
    return sg.rows.map_rows(look_up, table, (places, x), used=used)


def one_by_one(table, x, used, places):
    nothing = jax.eval_shape(look_up, table, (places[0], x[0]))
    nothing = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), nothing)
    rows = [
        look_up(table, (place, value)) if flag else nothing
        for place, value, flag in zip(places, x, used, strict=True)
    ]
    return jax.tree.map(lambda *xs: jnp.stack(xs), *rows)


def draw(rows, share=0.6):
    random = np.random.default_rng(rows)
    used = random.random(rows) < share
    x = jnp.where(used, random.uniform(0.5, 2.0, rows).astype(np.float32), 0.0)
    return x, used, jnp.asarray(random.integers(0, 40, rows), jnp.int32)


@pytest.mark.parametrize("rows, share", [(1, 0.0), (1, 1.0), (9, 0.6), (100, 0.1), (64, 1.0)])
@pytest.mark.parametrize("jit", [True, False])
def test_values_are_those_of_used_rows(rows, share, jit):
    x, used, places = draw(rows, share)
    call = jax.jit(mapped) if jit else mapped
    found = call(TABLE, x, jnp.asarray(used), places)
    true = one_by_one(TABLE, x, used, places)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5), found, true)


@pytest.mark.parametrize("native", [True, False])
def test_derivatives_of_any_order_are_those_of_used_rows(native):
    x, used, places = draw(37)

    def total(call):
        def of(table, x):
            vectors, more = call(table, x)
            return jnp.sum(jnp.sin(vectors)) + jnp.sum(more["part"] ** 2)

        return of

    def derivatives(function):
        by_both = jax.grad(function, (0, 1))
        ahead = lambda table, x: jax.jvp(by_both, (table, x), (TABLE / 3, jnp.ones_like(x)))
        return ahead

    ours = derivatives(total(lambda table, x: mapped(table, x, jnp.asarray(used), places)))
    theirs = derivatives(total(lambda table, x: one_by_one(table, x, used, places)))
    if native:
        found = jax.jit(ours)(TABLE, x)
    else:
        with sg.rows.lower_by_vmap():
            found = jax.jit(lambda *operands: ours(*operands))(TABLE, x)
    true = jax.jit(theirs)(TABLE, x)
    close = lambda a, b: np.testing.assert_allclose(a, b, rtol=2e-4, atol=1e-5)
    jax.tree.map(close, found, true)


def test_flags_differ_within_a_batch():
    x, _, places = draw(24, 1.0)
    flags = jnp.asarray(np.random.default_rng(3).random((3, 24)) < 0.5)
    found = jax.jit(jax.vmap(mapped, (None, None, 0, None)))(TABLE, x, flags, places)
    for lane, used in zip(found[0], flags, strict=True):
        true = one_by_one(TABLE, x, np.asarray(used), places)[0]
        np.testing.assert_allclose(lane, true, rtol=1e-5)


def test_callbacks_are_called_for_used_rows_alone():
    seen = []

    def note(_, x):
        jax.debug.callback(lambda x: seen.append(float(x)), x)
        return 2 * x

    used = jnp.array([True, False, True])
    found = jax.jit(lambda x: sg.rows.map_rows(note, None, x, used=used))(jnp.arange(1.0, 4.0))
    jax.effects_barrier()
    np.testing.assert_array_equal(found, [2.0, 0.0, 6.0])
    assert sorted(seen) == [1.0, 3.0]
