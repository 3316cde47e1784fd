"""What every class keeps, by one table: `contract_table.py`."""

import dataclasses
import inspect
import typing

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import AbstractArray, Float

import scenegraph as sg
from contract_table import abstract_classes, final_classes, INSTANCES, RECORDS, stack, TABLE
from helpers import assert_close
from scenegraph.data import RayBatches, Views
from scenegraph.numerics import unfreeze


def names(instances):
    return [f"{type(x).__name__}-{index}" for index, x in enumerate(instances)]


ROWS = [(contract, x) for contract in TABLE.values() for x in contract.instances]
every_row = pytest.mark.parametrize(("contract", "instance"), ROWS, ids=names([x for _, x in ROWS]))
# Pictures with stacked cameras are not kept in scene files.
SAVED = [x for x in INSTANCES if not isinstance(x, Views | RayBatches)]


def one(inputs, index):
    return jax.tree.map(lambda x: x[index], inputs)


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
    assert abstract_classes() == set(TABLE)
    alone = final_classes(eqx.Module) - {cls for parent in TABLE for cls in final_classes(parent)}
    assert {type(x) for x in RECORDS} == alone


# --- Asking


@every_row
def test_compiled_and_eager(contract, instance):
    inputs = one(contract.inputs, 0)
    compiled = eqx.filter_jit(contract.call)(instance, *inputs)
    assert_same(compiled, contract.call(instance, *inputs))


@every_row
def test_vmap_is_the_loop(contract, instance):
    """Over the inputs and over the instance's own leaves, which may have a leading axis too."""
    arrays, rest = eqx.partition(instance, eqx.is_array)
    stacked = jax.tree.map(vary, arrays)

    @jax.jit
    def ask(arrays, inputs):
        return contract.call(eqx.combine(arrays, rest), *inputs)

    together = jax.jit(jax.vmap(ask))(stacked, contract.inputs)
    loop = [ask(*one((stacked, contract.inputs), index)) for index in range(3)]
    assert_same(together, stack(loop))


def vary(leaf):
    factors = jnp.array([1.0, 1.1, 0.9]).reshape(3, *[1] * leaf.ndim)
    return leaf * factors if eqx.is_inexact_array(leaf) else jnp.stack([leaf] * 3)


# --- Differentiating


@every_row
def test_gradients_keep_the_tree(contract, instance):
    def total(instance):
        floats = eqx.filter(contract.call(instance, *one(contract.inputs, 0)), eqx.is_inexact_array)
        return sum(jnp.sum(leaf) for leaf in jax.tree.leaves(floats)) + 0.0

    gradient = eqx.filter_jit(eqx.filter_grad(total))(instance)
    wanted = eqx.filter(instance, eqx.is_inexact_array)
    assert jax.tree.structure(gradient) == jax.tree.structure(wanted)
    for a, b in zip(jax.tree.leaves(gradient), jax.tree.leaves(wanted), strict=True):
        assert a.shape == b.shape and a.dtype == b.dtype
        assert np.all(np.isfinite(a))


# --- Saving


def bits(tree):
    return [(x.dtype, x.shape, np.asarray(x).tobytes()) for x in jax.tree.leaves(tree)]


@pytest.mark.parametrize("instance", SAVED, ids=names(SAVED))
def test_saving_and_loading(instance, tmp_path):
    """Bit for bit, with the same structure: static fields are part of it."""
    sg.save(instance, tmp_path / "x.sg")
    loaded = sg.load(tmp_path / "x.sg")
    assert jax.tree.structure(loaded) == jax.tree.structure(instance)
    assert bits(loaded) == bits(instance)


# --- Array fields: those whose annotation is an array, or an array or `None`


def is_array_type(hint):
    return isinstance(hint, type) and issubclass(hint, AbstractArray)


def array_fields(cls):
    """Their names and annotations."""
    hints = typing.get_type_hints(cls)
    kinds = {
        f.name: (hints[f.name], *typing.get_args(hints[f.name])) for f in dataclasses.fields(cls)
    }
    return {
        name: next(filter(is_array_type, kind))
        for name, kind in kinds.items()
        if any(map(is_array_type, kind))
    }


@pytest.mark.parametrize("instance", INSTANCES, ids=names(INSTANCES))
def test_numbers_are_floating(instance):
    """Users may write `1` for `1.0`: what is annotated as floating has a gradient."""
    for name, hint in array_fields(type(instance)).items():
        value = unfreeze(getattr(instance, name))
        if hint.dtype is Float and value is not None:
            assert jnp.issubdtype(value.dtype, jnp.floating), name


MADE = {type(x): x for x in INSTANCES}
FIELDS = [
    (cls, name)
    for cls in MADE
    for name in array_fields(cls)
    if name in inspect.signature(cls).parameters
]


@pytest.mark.parametrize(("cls", "name"), FIELDS, ids=[f"{cls.__name__}.{x}" for cls, x in FIELDS])
def test_a_wrong_shape_is_an_error_that_names_the_field(cls, name):
    arguments = {x: getattr(MADE[cls], x) for x in inspect.signature(cls).parameters}
    dtype = jnp.float32 if arguments[name] is None else arguments[name].dtype
    arguments[name] = jnp.zeros((7, 5, 2), dtype)
    with pytest.raises((TypeError, ValueError), match=name):
        cls(**arguments)
