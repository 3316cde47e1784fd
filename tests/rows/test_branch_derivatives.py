"""Derivatives of branches, which are branches of their own, beside those of JAX."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import scenegraph as sg


TABLE = jnp.linspace(0.2, 1.7, 60).reshape(20, 3)


def nested(table, row):
    kind, x = row
    inner = lambda x: jax.lax.cond(x[0] > 0.8, lambda x: jnp.exp(x), lambda x: x * x[1], x)
    first = lambda x: jnp.sum(table[kind] * inner(x))
    second = lambda x: jnp.where(x[2] > 1, x[2], jnp.sin(x[0])) * table[kind + 3, 0]
    third = lambda x: jnp.zeros(())
    value = jax.lax.switch(kind % 3, [first, second, third], x)
    # What follows needs the value, too.
    return value * jnp.cos(value) + x[1], kind


def with_rule(table, row):
    """Has a rule of its own in a branch, and operands without a tangent."""
    kind, x = row
    norm = lambda x: sg.numerics.safe_norm(x - table[2]) * table[kind, 1]
    return jax.lax.cond(kind > 5, norm, lambda x: sg.numerics.safe_divide(x[0], x[2]), x)


def swapped(table, row):
    """Calls a compiled function of which one result does not depend on what moves."""
    kind, x = row
    swap = jax.jit(lambda a, b: (b, 2 * a))
    one, two = swap(x, table[kind])
    return jax.lax.cond(kind > 3, lambda: jnp.sum(one * two), lambda: jnp.prod(two) + one[0])


FUNCTIONS = [nested, with_rule, swapped]


def totals(function):
    def total(table, x, kinds, map_all):
        found = jax.tree.leaves(map_all(function, table, (kinds, x)))[0]
        return jnp.sum(jnp.sin(found))

    return total


def by_rows(function, table, rows):
    return sg.rows.map_rows(function, table, rows)


def by_vmap(function, table, rows):
    return jax.vmap(function, (None, 0))(table, rows)


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("which", [(0,), (1,), (0, 1)], ids=["shared", "rows", "both"])
def test_first_and_second_derivatives_are_those_of_vmap(function, which):
    draw = np.random.default_rng(5)
    x = jnp.asarray(draw.uniform(0.4, 1.6, (41, 3)), jnp.float32)
    kinds = jnp.asarray(draw.integers(0, 12, 41), jnp.int32)
    total = totals(function)

    def derivatives(map_all):
        gradient = jax.grad(lambda table, x: total(table, x, kinds, map_all), which)
        moves = jnp.cos(TABLE), jnp.sin(x)
        ahead = lambda table, x: jax.jvp(gradient, (table, x), moves)
        back = lambda table, x: jax.grad(
            lambda table, x: sum(jnp.sum(g * jnp.cos(g)) for g in gradient(table, x)), which
        )(table, x)
        return jax.jit(lambda table, x: (ahead(table, x), back(table, x)))(TABLE, x)

    close = lambda a, b: np.testing.assert_allclose(a, b, rtol=5e-4, atol=5e-5)
    jax.tree.map(close, derivatives(by_rows), derivatives(by_vmap))


def test_cases_hand_on_no_numbers_of_other_cases():
    # A thousand numbers in each of eight cases: handed on, they would be eight thousand results.
    def one(weights, row):
        kind, x = row
        cases = [lambda x, k=k: jnp.sum(jnp.sin(x * weights[k])) for k in range(8)]
        return jax.lax.switch(kind, cases, x)

    weights = jnp.linspace(0.1, 1.0, 8 * 25).reshape(8, 25)
    rows = jnp.arange(16, dtype=jnp.int32) % 8, jnp.ones((16, 25))
    loss = lambda weights: jnp.sum(sg.rows.map_rows(one, weights, rows))
    found = jax.jit(jax.grad(loss))(weights)
    true = jax.jit(jax.grad(lambda w: jnp.sum(jax.vmap(one, (None, 0))(w, rows))))(weights)
    np.testing.assert_allclose(found, true, rtol=1e-5)
    jaxpr = jax.make_jaxpr(jax.grad(loss))(weights)
    assert most_results(jaxpr.jaxpr) <= 8 * 25 + 25


def most_results(jaxpr):
    """The most numbers that a branch within returns."""
    most = 0
    for equation in jaxpr.eqns:
        if equation.primitive.name == "cond":
            most = max(most, sum(x.aval.size for x in equation.outvars))
        for value in equation.params.values():
            for x in value if isinstance(value, tuple | list) else [value]:
                inner = getattr(x, "jaxpr", None)
                if "eqns" in dir(inner):
                    most = max(most, most_results(inner))
    return most
