"""Functions that are traced once for arguments of a kind, however often they are compiled."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import numpy as np

from .._garbage import keep_new_objects
from .._jax import ClosedJaxpr, weakref_lru_cache
from .._typing import PyTree


class Call(NamedTuple):
    """The arguments of a call, taken apart once: flattening many nodes is slow."""

    args: Sequence[Any]
    kwargs: Mapping[str, Any]
    leaves: list[Any]
    structure: Any
    kind: Any  # equal for calls that are computed by the same program

    @property
    def arrays(self) -> list[Any]:
        return [x for x in self.leaves if eqx.is_array(x)]


def take_apart(args: Sequence[Any], kwargs: Mapping[str, Any]) -> Call:
    """Returns what a call with some arguments consists of."""
    leaves, structure = jax.tree.flatten((tuple(args), dict(kwargs)))
    return Call(args, kwargs, leaves, structure, _kind(leaves, structure))


class Traced(NamedTuple):
    """A function of arguments of a kind: its equations, and results that are no arrays."""

    jaxpr: ClosedJaxpr
    structure: Any
    static: list[Any]  # of all results, with a mark for arrays

    def put_together(self, arrays: Sequence[Any]) -> PyTree:
        """Returns the results, of which some arrays were computed."""
        return jax.tree.unflatten(self.structure, _filled(self.static, arrays))


class TracedFunction:
    """Traces a function for arguments of a kind, once until JAX's caches are cleared."""

    def __init__(self, function: Callable[..., Any]):
        self.function = function

    def __call__(self, call: Call) -> Traced:
        """Returns the equations for a kind, on the present device."""
        known, device = known_of(self, call.kind), default_device()
        if device not in known:
            known[device] = _trace(self.function, call)
        return known[device]

    def forget(self, call: Call) -> None:
        """Forgets the equations for arguments of a kind, which take much memory."""
        known_of(self, call.kind).clear()


def _trace(function: Callable[..., Any], call: Call) -> Traced:
    """Traces a function of lists of arrays, which is quicker than one of trees."""
    static, results = _without_arrays(call.leaves), {}

    def of_arrays(*arrays: Any) -> list[Any]:
        args, kwargs = jax.tree.unflatten(call.structure, _filled(static, arrays))
        every, results["structure"] = jax.tree.flatten(function(*args, **kwargs))
        results["static"] = _without_arrays(every)
        return [x for x in every if eqx.is_array(x)]

    traced = Traced(jax.make_jaxpr(of_arrays)(*call.arrays), **results)
    # Equations are kept as long as their program.
    keep_new_objects()
    return traced


class _Array:
    """Stands for an array among leaves."""


def _without_arrays(leaves: list[Any]) -> list[Any]:
    return [_Array if eqx.is_array(x) else x for x in leaves]


def _filled(leaves: list[Any], arrays: Sequence[Any]) -> list[Any]:
    """Puts arrays where they stand among leaves."""
    rest = iter(arrays)
    return [next(rest) if x is _Array else x for x in leaves]


def default_device() -> Any:
    """Returns the device that is chosen where nothing else says so, or `None`."""
    config: Any = jax.config  # its type lacks the settings
    return config.jax_default_device


@weakref_lru_cache
def known_of(owner: Any, kind: Any) -> dict[Any, Any]:
    """Holds what was made for arguments of a kind, by device, until JAX's caches are cleared."""
    return {}


def kind_of(tree: PyTree) -> Any:
    """Returns what trees have in common that are compiled to the same program."""
    return _kind(*jax.tree.flatten(tree))


def _kind(leaves: list[Any], structure: Any) -> Any:
    return structure, tuple(map(_kind_of_leaf, leaves))


def _kind_of_leaf(x: Any) -> Any:
    if isinstance(x, jax.Array):
        # What is weak takes the type of what it is combined with.
        return jax.typeof(x)
    # Numbers of different types are equal, but need not give the same program.
    return (x.shape, x.dtype) if isinstance(x, np.ndarray) else (type(x), x)
