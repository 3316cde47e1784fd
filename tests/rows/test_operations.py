"""Operations that stand for many: lists of true entries, sums of many arrays, late functions."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import scenegraph as sg


LISTS = [(0.0, 8), (1.0, 8), (0.5, 30), (0.5, 100), (0.3, 1)]


@pytest.mark.parametrize("share, length", LISTS)
@pytest.mark.parametrize("jit", [True, False])
def test_lists_of_true_entries(share, length, jit):
    mask = np.random.default_rng(1).random(77) < share
    call = sg.rows.list_true
    found = (jax.jit(call, static_argnums=1) if jit else call)(jnp.asarray(mask), length)
    true = np.flatnonzero(mask)
    places = np.full(length, -1)
    places[: min(length, len(true))] = true[:length]
    np.testing.assert_array_equal(found.places, places)
    ranks = np.where(mask, np.cumsum(mask) - 1, -1)
    np.testing.assert_array_equal(found.ranks, ranks)
    assert found.total == len(true)


def test_lists_of_a_batch():
    masks = jnp.asarray(np.random.default_rng(2).random((4, 33)) < 0.4)
    found = jax.jit(jax.vmap(lambda mask: sg.rows.list_true(mask, 20)))(masks)
    for k, mask in enumerate(masks):
        one = sg.rows.list_true(mask, 20)
        jax.tree.map(lambda x, y, k=k: np.testing.assert_array_equal(x[k], y), found, one)


@pytest.mark.parametrize("double", [False, True])
def test_sums_of_many_arrays(double):
    with jax.enable_x64(double):
        shapes = [(), (1,), (8,), (3, 5), (2, 1, 9), (0, 4)]
        kinds = [np.float64 if double else np.float32, np.int32]
        draw = np.random.default_rng(0)
        make = lambda: [
            jnp.asarray(10 * draw.normal(size=shape), kind) for shape in shapes for kind in kinds
        ]
        one, two = make(), make()
        found = jax.jit(sg.rows.add_each)(one, two)
        for x, a, b in zip(found, one, two, strict=True):
            np.testing.assert_array_equal(x, a + b)
            assert x.dtype == a.dtype


def test_sums_in_a_loop_leave_operands_as_they_are():
    start, term = [jnp.arange(20.0), jnp.ones(3)], [jnp.full(20, 0.5), jnp.full(3, 2.0)]
    loop = lambda start: jax.lax.fori_loop(0, 6, lambda _, x: sg.rows.add_each(x, term), start)
    found, before = jax.jit(lambda x: (loop(x), x))(start)
    np.testing.assert_array_equal(found[0], start[0] + 3)
    np.testing.assert_array_equal(found[1], start[1] + 12)
    np.testing.assert_array_equal(before[0], jnp.arange(20.0))


def late(traced, x, y):
    """Three times the sine of one number, and another one as it is."""

    def function(x, y):
        traced.append("value")
        return {"sine": 3 * jnp.sin(x), "same": y}

    def push(primals, tangents):
        traced.append("derivative")
        (x, y), (dx, dy) = primals, tangents
        change = None if dx is None else 3 * jnp.cos(x) * dx
        return {"sine": 3 * jnp.sin(x), "same": y}, {"sine": change, "same": dy}

    shapes = {"sine": x, "same": y}
    return sg.rows.call_late(function, push, shapes, x, y)


def test_a_late_function_is_traced_when_it_is_compiled():
    traced = []
    x, y = jnp.array([0.5, 1.0]), jnp.array(2.0)
    value = jax.jit(lambda x, y: late(traced, x, y))
    program = value.trace(x, y)
    assert not traced
    np.testing.assert_allclose(program.lower().compile()(x, y)["sine"], 3 * jnp.sin(x), rtol=1e-6)
    assert traced == ["value"]


def test_derivatives_of_a_late_function_trace_it_alone():
    traced = []
    x, y = jnp.array([0.5, 1.0]), jnp.array(2.0)
    loss = lambda x, y: jnp.sum(jax.jit(lambda x, y: late(traced, x, y))(x, y)["sine"]) * y
    by_both = jax.jit(jax.grad(loss, (0, 1)))(x, y)
    np.testing.assert_allclose(by_both[0], 6 * jnp.cos(x), rtol=1e-6)
    np.testing.assert_allclose(by_both[1], jnp.sum(3 * jnp.sin(x)), rtol=1e-6)
    assert set(traced) == {"derivative"}
    second = jax.jit(jax.jacfwd(jax.grad(loss)))(x, y)
    np.testing.assert_allclose(second, jnp.diag(-6 * jnp.sin(x)), rtol=1e-5, atol=1e-6)


def test_a_batch_of_late_functions():
    x, y = jnp.linspace(0, 1, 12).reshape(4, 3), jnp.array(2.0)
    loss = lambda x: jnp.sum(late([], x, y)["sine"] ** 2)
    found = jax.jit(jax.vmap(jax.value_and_grad(loss)))(x)
    np.testing.assert_allclose(found[0], jnp.sum(9 * jnp.sin(x) ** 2, axis=1), rtol=1e-5)
    np.testing.assert_allclose(found[1], 18 * jnp.sin(x) * jnp.cos(x), rtol=1e-5)


def test_zeros_of_many_shapes():
    kinds = [((3, 4), np.float32), ((), np.int32), ((5,), np.bool_), ((0, 2), np.float32)]
    shapes = [jax.ShapeDtypeStruct(*kind) for kind in kinds]
    for found in (sg.rows.zeros_each(shapes), jax.jit(lambda: sg.rows.zeros_each(shapes))()):
        for x, (shape, kind) in zip(found, kinds, strict=True):
            np.testing.assert_array_equal(x, np.zeros(shape, kind))
            assert x.dtype == kind
