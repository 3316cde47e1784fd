import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from scenegraph.numerics import map_used_blocks, sum_over_blocks
from support.helpers import assert_close


ROWS = {"x": jnp.linspace(-1.0, 2.0, 21).reshape(7, 3), "number": jnp.arange(7)}
SHARED = jnp.array([0.3, -0.5, 0.8])


def wave(shared, rows):
    """A sum over rows of something curved in both arguments."""
    each = jnp.sin(rows["x"] @ shared + rows["number"]) * jnp.sum(rows["x"] ** 2, axis=1)
    return jnp.sum(each), {"count": jnp.asarray(each.size), "sum": jnp.sum(rows["x"])}


@jax.jit
@functools.partial(jax.value_and_grad, argnums=(0, 1), has_aux=True)
def whole(shared, x):
    return wave(shared, {**ROWS, "x": x})


@pytest.mark.parametrize("size", [1, 2, 3, 6, 7, 9])
def test_sums_and_gradients_of_any_block_size(size):
    def summed(shared, x):
        return sum_over_blocks(wave, shared, {**ROWS, "x": x}, size)

    (value, others), slopes = jax.jit(jax.value_and_grad(summed, (0, 1), has_aux=True))(
        SHARED, ROWS["x"]
    )
    (expected_value, expected_others), expected_slopes = whole(SHARED, ROWS["x"])
    assert_close(value, expected_value)
    assert_close(summed(SHARED, ROWS["x"])[0], expected_value)
    assert others["count"] == 7
    assert_close(others["sum"], expected_others["sum"])
    for slope, expected in zip(slopes, expected_slopes, strict=True):
        assert_close(slope, expected)


def test_gradient_of_one_argument_alone():
    """What is not asked for is not worked out: integer rows and held leaves stay as they are."""
    ours = lambda shared: 3 * sum_over_blocks(wave, shared, ROWS, 2)[0]
    slope = eqx.filter_jit(eqx.filter_grad(ours))(SHARED)
    assert_close(slope, 3 * np.asarray(whole(SHARED, ROWS["x"])[1][0]))


def test_second_derivatives(x64):
    rows = {"x": jnp.asarray(ROWS["x"], jnp.float64), "number": ROWS["number"]}

    def length_of_slope(shared):
        slope = jax.grad(lambda s: sum_over_blocks(wave, s, rows, 2)[0])(shared)
        return jnp.sum(slope**2)

    def expected(shared):
        return jnp.sum(jax.grad(lambda s: wave(s, rows)[0])(shared) ** 2)

    point = jnp.asarray(SHARED, jnp.float64)
    seen, slope = (jax.jit(jax.grad(f))(point) for f in (length_of_slope, expected))
    assert_close(seen, slope, 1e-10)


def test_no_gradient_through_what_stands_beside():
    slope = jax.grad(lambda x: sum_over_blocks(wave, SHARED, {**ROWS, "x": x}, 2)[1]["sum"])
    assert not np.any(jax.jit(slope)(ROWS["x"]))


def test_memory_does_not_grow_with_the_rows():
    def needed(count, size):
        rows = jnp.zeros((count, 64))

        def network(weight, rows):
            x = rows
            for _ in range(6):
                x = jnp.tanh(x @ weight)
            return jnp.sum(x), None

        slope = jax.jit(jax.grad(lambda w: sum_over_blocks(network, w, rows, size)[0]))
        return slope.lower(jnp.eye(64)).compile().memory_analysis().temp_size_in_bytes

    assert needed(2**14, 2**8) < 1.1 * needed(2**11, 2**8) + 2**21
    assert needed(2**14, 2**8) < 0.2 * needed(2**14, 2**14)


def curve(rows):
    return {"sine": jnp.sin(rows["x"]) * rows["number"][:, None], "number": rows["number"]}


@pytest.mark.parametrize("size", [1, 2, 3, 7, 9])
@pytest.mark.parametrize("count", [0, 1, 4, 7])
def test_used_blocks_have_values_and_gradients_of_the_whole(size, count):
    used = jnp.arange(7) < count

    def total(function, x):
        results = function({**ROWS, "x": x})
        return jnp.sum(jnp.where(used[:, None], results["sine"], 0) ** 2), results

    mapped = functools.partial(map_used_blocks, curve, used=used, size=size)
    of_blocks = jax.jit(jax.value_and_grad(functools.partial(total, mapped), has_aux=True))
    at_once = jax.value_and_grad(functools.partial(total, curve), has_aux=True)
    (value, results), slope = of_blocks(ROWS["x"])
    (expected_value, expected), expected_slope = at_once(ROWS["x"])
    assert_close(value, expected_value)
    assert_close(slope, expected_slope)
    assert_close(results["sine"][:count], expected["sine"][:count])
    assert np.array_equal(results["number"][:count], expected["number"][:count])


def test_blocks_without_a_used_row_are_not_computed():
    computed = []

    def function(rows):
        jax.debug.callback(lambda rows: computed.append(rows.tolist()), rows)
        return 1 / rows

    used = jnp.array([True, False, False, False, False, True])
    results = jax.jit(lambda rows: map_used_blocks(function, rows, used, 2))(jnp.arange(6.0))
    jax.effects_barrier()
    assert sorted(computed) == [[0, 1], [4, 5]]
    assert results[2:4].tolist() == [0, 0]
    mapped = jax.vmap(lambda rows: map_used_blocks(lambda x: x + 1, rows, used, 2))
    assert_close(mapped(jnp.zeros((3, 6)))[:, [0, 5]], jnp.ones((3, 2)))
