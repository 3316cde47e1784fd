"""Every final class can be saved and loaded, and refuses arrays of the wrong shape."""

import dataclasses
import inspect
import types
import typing

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import AbstractArray, Float

import scenegraph as sg
from scenegraph.data import RayBatches, Views
from scenegraph.flat import FlatScene, Instance, InstanceStack, LeafStack, SceneStacks
from scenegraph.integrators._base import MediaAlong
from scenegraph.integrators._occupancy_march import March
from scenegraph.integrators._packed import PackedSteps
from scenegraph.integrators._per_volume import PerVolume
from scenegraph.numerics import unfreeze
from scenegraph.scene import PerCopy
from support.contract_table import INSTANCES


def names(instances):
    return [f"{type(x).__name__}-{index}" for index, x in enumerate(instances)]


# Stacked cameras and surfaces, and what integrators work with, are not kept in scene files.
FLAT = FlatScene | Instance | InstanceStack | SceneStacks | LeafStack | PerCopy
UNSAVED = Views | RayBatches | FLAT | March | PackedSteps | MediaAlong | PerVolume
SAVED = [x for x in INSTANCES if not isinstance(x, UNSAVED)]


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


def options(hint):
    """What a union allows."""
    return typing.get_args(hint) if isinstance(hint, types.UnionType) else ()


def array_fields(cls):
    """Their names and annotations."""
    hints = typing.get_type_hints(cls)
    kinds = {f.name: (hints[f.name], *options(hints[f.name])) for f in dataclasses.fields(cls)}
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
        if hint.dtype is Float and eqx.is_array(value):
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
    dtype = arguments[name].dtype if eqx.is_array(arguments[name]) else jnp.float32
    arguments[name] = jnp.zeros((7, 5, 2, 9), dtype)
    with pytest.raises((TypeError, ValueError), match=name):
        cls(**arguments)
