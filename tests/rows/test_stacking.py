"""Many arrays as one, and back, against `jnp.stack`; and kernels that are not there yet."""

import logging
import threading

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import scenegraph as sg
from scenegraph.rows import _target, stack_alike


SHAPES = [(), (3,), (2, 2)]


def arrays_of(shape, count=5):
    draw = np.random.default_rng(count)
    return [jnp.asarray(draw.normal(size=shape), jnp.float32) for _ in range(count)]


@pytest.mark.parametrize("shape", SHAPES)
def test_values_and_derivatives_are_those_of_a_stack(shape):
    arrays = arrays_of(shape)
    weights = jnp.arange(5.0).reshape(5, *(1,) * len(shape))

    def loss(stack):
        return lambda arrays: jnp.sum(weights * jnp.sin(stack(arrays)) ** 2)

    for function in (jax.grad, jax.jacfwd, lambda f: jax.jacfwd(jax.grad(f))):
        ours, theirs = (jax.jit(function(loss(x)))(arrays) for x in (stack_alike, jnp.stack))
        jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-6), ours, theirs)
    np.testing.assert_array_equal(jax.jit(stack_alike)(arrays), jnp.stack(arrays))
    np.testing.assert_array_equal(stack_alike(arrays), jnp.stack(arrays))


def test_some_have_no_derivative_and_some_are_whole_numbers():
    fixed, moving = arrays_of((3,)), arrays_of((3,), 4)
    loss = lambda stack, x: jnp.sum(stack([*fixed, x, *fixed]) ** 3)
    ours, theirs = (jax.jit(jax.grad(loss, 1), static_argnums=0)(x, moving[0]) for x in STACKS)
    np.testing.assert_allclose(ours, theirs, rtol=1e-6)
    numbers = [jnp.int32(k) for k in range(4)]
    np.testing.assert_array_equal(jax.jit(stack_alike)(numbers), range(4))


STACKS = stack_alike, jnp.stack


def test_batches_are_stacked_for_each_of_them():
    arrays = [jnp.stack(arrays_of((3,), k + 2)[:2]) for k in range(4)]
    same = [x if k % 2 else x[0] for k, x in enumerate(arrays)]
    for axes, some in ((0, arrays), ([None, 0, None, 0], same)):
        both = [jax.jit(jax.vmap(lambda x, f=f: f(x), (axes,)))(some) for f in STACKS]
        np.testing.assert_array_equal(*both)
    slope = lambda f: jax.vmap(jax.grad(lambda x: jnp.sum(jnp.sin(f(x)))))(arrays)
    jax.tree.map(np.testing.assert_allclose, slope(stack_alike), slope(jnp.stack))


def test_calls_wait_for_a_kernel(monkeypatch):
    allowed, compiled = threading.Event(), _target._compile

    def slowly(code):
        if threading.current_thread() is not threading.main_thread():
            assert allowed.wait(60)
        return compiled(code)

    monkeypatch.setattr(_target, "_compile", slowly)
    timer = threading.Timer(0.3, allowed.set)
    timer.start()
    double = jax.jit(lambda x: sg.rows.map_rows(lambda _, x: 2 * x + 0.123456, None, x))
    np.testing.assert_allclose(double(jnp.arange(20.0)), 2 * np.arange(20) + 0.123456, rtol=1e-6)
    assert allowed.is_set()


def test_a_kernel_that_cannot_be_compiled_is_an_error(monkeypatch, caplog):
    compiled = _target._compile

    def broken(code):
        if threading.current_thread() is threading.main_thread():
            return compiled(code)
        raise RuntimeError("no such instruction")

    monkeypatch.setattr(_target, "_compile", broken)
    double = jax.jit(lambda x: sg.rows.map_rows(lambda _, x: 2 * x + 0.654321, None, x))
    with (
        caplog.at_level(logging.ERROR, "scenegraph.compile"),
        pytest.raises(jax.errors.JaxRuntimeError, match="could not compile a kernel"),
    ):
        jax.block_until_ready(double(jnp.arange(20.0)))
    assert "no such instruction" in caplog.text
