import equinox as eqx
import jax
import jax.numpy as jnp
import pytest

from scenegraph.numerics import sum_over_blocks
from support.helpers import assert_close


ROWS = {"x": jnp.linspace(-1.0, 2.0, 21).reshape(7, 3), "number": jnp.arange(7)}
SHARED = jnp.array([0.3, -0.5, 0.8])


def wave(shared, rows):
    """A sum over rows of something curved in both arguments."""
    each = jnp.sin(rows["x"] @ shared + rows["number"]) * jnp.sum(rows["x"] ** 2, axis=1)
    return jnp.sum(each), {"count": jnp.asarray(each.size), "sum": jnp.sum(rows["x"])}


@pytest.mark.parametrize("size", [1, 2, 3, 6, 7, 9])
def test_sums_and_gradients_of_any_block_size(size):
    def summed(shared, x):
        return sum_over_blocks(wave, shared, {**ROWS, "x": x}, size)

    (value, others), slopes = jax.jit(jax.value_and_grad(summed, (0, 1), has_aux=True))(
        SHARED, ROWS["x"]
    )
    whole = jax.grad(lambda shared, x: wave(shared, {**ROWS, "x": x})[0], (0, 1))
    expected_value, expected_others = wave(SHARED, ROWS)
    assert_close(value, expected_value)
    assert_close(summed(SHARED, ROWS["x"])[0], expected_value)
    assert others["count"] == 7
    assert_close(others["sum"], expected_others["sum"])
    for slope, expected in zip(slopes, whole(SHARED, ROWS["x"]), strict=True):
        assert_close(slope, expected)


def test_gradient_of_one_argument_alone():
    """What is not asked for is not worked out: integer rows and held leaves stay as they are."""
    slope = eqx.filter_grad(lambda shared: 3 * sum_over_blocks(wave, shared, ROWS, 2)[0])(SHARED)
    assert_close(slope, 3 * jax.grad(lambda shared: wave(shared, ROWS)[0])(SHARED))


def test_second_derivatives(x64):
    rows = {"x": jnp.asarray(ROWS["x"], jnp.float64), "number": ROWS["number"]}

    def length_of_slope(shared):
        slope = jax.grad(lambda s: sum_over_blocks(wave, s, rows, 2)[0])(shared)
        return jnp.sum(slope**2)

    def expected(shared):
        return jnp.sum(jax.grad(lambda s: wave(s, rows)[0])(shared) ** 2)

    point = jnp.asarray(SHARED, jnp.float64)
    assert_close(jax.grad(length_of_slope)(point), jax.grad(expected)(point), 1e-10)


def test_no_gradient_through_what_stands_beside():
    slope = jax.grad(lambda x: sum_over_blocks(wave, SHARED, {**ROWS, "x": x}, 2)[1]["sum"])
    assert not slope(ROWS["x"]).any()


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
