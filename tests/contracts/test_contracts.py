"""What every class keeps, by one table: `contract_table.py`."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from scenegraph import cameras, data, integrators, rays, shapes, transforms
from scenegraph.numerics import AbstractModule
from support.contract_table import abstract_classes, final_classes, RECORDS, TABLE
from support.helpers import assert_close


ROWS = [(contract, x) for contract in TABLE.values() for x in contract.instances]
# Classes that take long to compile, with their derivatives or without.
LONG_DERIVATIVES = {
    cameras.FisheyeCamera,
    cameras.MovedCamera,
    cameras.OpenCVCamera,
    cameras.RollingShutter,
    data.Random,
    rays.CylinderBeam,
    shapes.Capsule,
    shapes.Cylinder,
    shapes.HeightField,
    shapes.SignedDistance,
    shapes.TriangleMesh,
    transforms.Composed,
}
LONG = LONG_DERIVATIVES | {
    integrators.Hierarchical,
    integrators.Integrator,
    integrators.OccupancyMarch,
    integrators.Surfaces,
    shapes.Box,
}


def every_row(long):
    """Runs a test for every row of the table, slow where the class is one of `long`."""
    rows = [
        pytest.param(
            contract,
            x,
            id=f"{type(x).__name__}-{index}",
            marks=pytest.mark.slow if type(x) in long else (),
        )
        for index, (contract, x) in enumerate(ROWS)
    ]
    return pytest.mark.parametrize(("contract", "instance"), rows)


def on_host(tree):
    """As NumPy's arrays, whose parts and stacks need no compiling; keys stay what they are."""
    return jax.tree.map(
        lambda x: x if jax.dtypes.issubdtype(x.dtype, jax.dtypes.prng_key) else np.asarray(x), tree
    )


def one(inputs, index):
    return jax.tree.map(lambda x: jnp.asarray(x[index]), inputs)


def assert_same(actual, expected, tolerance=1e-5):
    assert jax.tree.structure(actual) == jax.tree.structure(expected)
    for a, b in zip(jax.tree.leaves(actual), jax.tree.leaves(expected), strict=True):
        assert a.dtype == b.dtype
        assert_close(a, b, tolerance, 1e-6)


# --- The table is complete


@pytest.mark.parametrize("parent", TABLE)
def test_every_final_class_is_in_the_table(parent):
    assert {type(x) for x in TABLE[parent].instances} == final_classes(parent)


def test_every_class_is_somewhere():
    # Abstract classes below others may have rows of their own.
    assert abstract_classes() == {cls for cls in TABLE if cls.__bases__ == (AbstractModule,)}
    alone = final_classes(eqx.Module) - {cls for parent in TABLE for cls in final_classes(parent)}
    assert {type(x) for x in RECORDS} == alone


# --- Asking


@every_row(LONG)
def test_vmap_is_the_loop(contract, instance):
    """Over the inputs and over the leaves of the instance itself."""
    ask, stacked = asked(contract, instance)
    compiled = jax.jit(ask)
    loop = [compiled(*one(stacked, index)) for index in range(3)]
    assert_same(jax.jit(jax.vmap(ask))(*stacked), jax.tree.map(lambda *x: np.stack(x), *loop))


@every_row(LONG | {type(x) for contract in TABLE.values() for x in contract.instances[1:]})
def test_compiled_is_eager(contract, instance):
    """Eager, every operation is compiled alone: quick for one class of each kind."""
    ask, stacked = asked(contract, instance)
    inputs = one(stacked, 0)
    assert_same(jax.jit(ask)(*inputs), ask(*inputs))


def asked(contract, instance):
    """What the table asks, as a function of arrays; and three of these arrays, stacked."""
    arrays, rest = eqx.partition(instance, eqx.is_array)

    def ask(arrays, inputs):
        return contract.call(eqx.combine(arrays, rest), *inputs)

    return ask, (jax.tree.map(vary, on_host(arrays)), on_host(contract.inputs))


def vary(leaf):
    """Three slightly different leaves."""
    factors = np.array([1.0, 1.1, 0.9], np.float32).reshape(3, *[1] * leaf.ndim)
    return leaf * factors if np.issubdtype(leaf.dtype, np.inexact) else np.stack([leaf] * 3)


# --- Differentiating


@every_row(LONG_DERIVATIVES | {data.IgnoreAlpha})
def test_gradients_keep_the_tree(contract, instance):
    inputs = one(on_host(contract.inputs), 0)

    def total(instance):
        floats = eqx.filter(contract.call(instance, *inputs), eqx.is_inexact_array)
        return sum(jnp.sum(leaf) for leaf in jax.tree.leaves(floats)) + 0.0

    gradient = eqx.filter_jit(eqx.filter_grad(total))(instance)
    wanted = eqx.filter(instance, eqx.is_inexact_array)
    assert jax.tree.structure(gradient) == jax.tree.structure(wanted)
    for a, b in zip(jax.tree.leaves(gradient), jax.tree.leaves(wanted), strict=True):
        assert a.shape == b.shape and a.dtype == b.dtype
        assert np.all(np.isfinite(a))
