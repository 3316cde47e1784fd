"""A wrong call is made of every public function and method, argument by argument.

The other arguments are of the right kind, made from their annotations; no body is ever reached.
"""

import collections.abc
import inspect
import os
import types
import typing

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from jaxtyping import AbstractArray, TypeCheckError

import scenegraph as sg
from scenegraph import lights
from scenegraph.fitting import Deadline, RenderLoss, start_state
from scenegraph.flat import SurfaceTree
from scenegraph.visibility import FoundSheet, ListedSheet
from scenegraph.visibility._search import no_items
from scenegraph.visibility._walk import Place
from support.architecture_classes import find_modules
from support.contract_table import INSTANCES, SCENE


PACKAGES = [x for x in vars(sg).values() if isinstance(x, types.ModuleType) and x.__file__]
OPTIMIZER = optax.sgd(0.1)
STATE = start_state(SCENE, OPTIMIZER, key=jax.random.key(0))
INFO = sg.fitting.StepInfo(*jnp.ones(3), jnp.ones(2, bool), jnp.array(0))
FACES = sg.TriangleMesh([[0.0, 0, 0], [1, 0, 0], [0, 1, 0]], [[0, 1, 2]])
SURFACE = sg.Scene(sg.Group(mesh=sg.Surface(FACES, [1.0] * 3)))
MESH = eqx.filter_jit(lambda scene: sg.flat.flatten(scene).triangles)(SURFACE)
VALUES = [
    *INSTANCES,
    STATE,
    STATE.keys,
    INFO,
    sg.preset("tiny"),
    sg.fitting.Progress(1, STATE, INFO, 1.0, 1.0),
    sg.optimizers.Linear(),
    sg.optimizers.LogLinear(),
    Deadline(10.0),
    RenderLoss(),
    sg.losses.mesh_edges(jnp.array([[0, 1, 2]])),
    no_items(2, jnp.zeros(2)),
    Place(jnp.uint32(1), jnp.uint32(0)),
    SurfaceTree((), jnp.zeros((2, 6)), *jnp.zeros((2, 1), jnp.int32), jnp.uint32(1)),
    MESH,
    MESH.tree,
    sg.shapes.no_sheets(2, jnp.float32),
    sg.shapes.Piece(*jnp.ones(4), jnp.asarray(1)),
    FoundSheet(jnp.zeros((2, 2), jnp.int32), *jnp.zeros((4, 2, 2))),
    ListedSheet(jnp.asarray(1), *jnp.zeros(2), no_items(2, jnp.zeros(()))),
    OPTIMIZER,
    jax.random.key(0),
    lights.tabulate_panorama(jnp.ones((2, 4, 3)), ()),
    "text",
    True,
    2,
    0.5,
    b"bytes",
    np.zeros(3, np.float32),
]
SIZES = {"samples": 6, "samples+1": 7, "edges": 7, "edges-1": 6}
# No argument has this one; of few numbers, because the message prints them all.
WRONG = (3, 1, 2, 1, 1)
NUMBERS = {"float": jnp.float32, "int": jnp.int32, "uint": jnp.uint8, "bool": jnp.bool_}


def is_array(hint):
    return isinstance(hint, type) and issubclass(hint, AbstractArray)


def shape(hint):
    """A shape that an annotation allows; none for what it leaves open."""
    names = [name for name in hint.dim_str.split() if not name.startswith(("*", "..."))]
    return tuple(int(name) if name.isdigit() else SIZES.get(name, 2) for name in names)


def array(hint, dimensions):
    kinds = hint.dtypes if isinstance(hint.dtypes, list | tuple) else ["float32"]
    if any("prng" in kind or "key" in kind for kind in kinds):
        return jax.random.split(jax.random.key(0), dimensions) if dimensions else jax.random.key(0)
    if len(kinds) == 1:
        return jnp.zeros(dimensions, kinds[0])
    kind = next(k for k in NUMBERS if any(x.startswith(k) for x in kinds))
    return jnp.zeros(dimensions, NUMBERS[kind])


def first_possible(options):
    return None if type(None) in options else make(options[0])


GENERIC = {
    typing.Union: first_possible,
    types.UnionType: first_possible,
    typing.Literal: lambda options: options[0],
    tuple: lambda parts: tuple(make(part) for part in parts if part is not ...),
    list: lambda _: [],
    collections.abc.Sequence: lambda _: [],
    dict: lambda _: {},
    collections.abc.Mapping: lambda _: {},
    collections.abc.Callable: lambda _: print,
    os.PathLike: lambda _: ".",
}


def make(hint):
    """Any value that an annotation allows."""
    kind = typing.get_origin(hint) or hint
    if kind in GENERIC:
        return GENERIC[kind](typing.get_args(hint))
    if is_array(hint):
        return array(hint, shape(hint))
    if hint in (typing.Any, inspect.Parameter.empty) or is_tree(hint):
        return 0
    return next(value for value in VALUES if isinstance(value, kind))


def is_tree(hint):
    return "PyTree" in str(hint) and not is_array(hint)


def functions():
    """Every public function, and every public method with an instance of its class."""
    for package in PACKAGES:
        for name, value in vars(package).items():
            if isinstance(value, types.FunctionType):
                yield f"{package.__name__}.{name}", value, ()
    for cls in find_modules("scenegraph"):
        owners = [value for value in VALUES if isinstance(value, cls)]
        for name, value in vars(cls).items():
            public = not name.startswith("_") or name in ("__call__", "__init__")
            if public and isinstance(value, types.FunctionType) and owners:
                yield f"{cls.__module__}.{cls.__name__}.{name}", value, (owners[0],)


def array_arguments(function):
    hints = typing.get_type_hints(function)
    return [name for name, hint in hints.items() if name != "return" and arrays_in(hint)]


def arrays_in(hint):
    """The array types that an annotation names, unless it allows anything array-like as well."""
    options = [hint, *typing.get_args(hint)]
    return [x for x in options if is_array(x)] if len(options) <= 3 else []


CASES = {
    f"{label}({name})": (function, owner, name)
    for label, function, owner in functions()
    for name in array_arguments(function)
}


def test_there_is_much_to_call():
    assert len(CASES) > 120


@pytest.mark.parametrize("case", CASES)
def test_a_wrong_shape_is_refused_by_name(case):
    function, owner, wrong = CASES[case]
    hints = typing.get_type_hints(function)
    parameters = list(inspect.signature(function).parameters.values())[len(owner) :]
    arguments = {
        p.name: make(hints.get(p.name, p.annotation))
        for p in parameters
        if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
        and (p.name == wrong or p.default is p.empty)
    }
    hint = arrays_in(hints[wrong])[0]
    open_shape = any(name.startswith(("*", "...")) for name in hint.dim_str.split())
    # Where any shape will do, a wrong kind of number.
    arguments[wrong] = jnp.zeros(3, jnp.complex64) if open_shape else array(hint, WRONG)
    with pytest.raises(TypeCheckError) as caught:
        function(*owner, **arguments)
    message = str(caught.value)
    assert message.startswith(f"`{wrong}` of `")
    assert "\n" not in message
    assert ("complex64[3]" if open_shape else str(list(WRONG))) in message
    assert hint.dim_str in message
