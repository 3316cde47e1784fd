"""Functions that are traced once for arguments of a kind, however often they are compiled."""

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import numpy as np
from jax._src import config
from jax._src.util import weakref_lru_cache
from jax.extend.core import ClosedJaxpr

from .._typing import PyTree


class Traced(NamedTuple):
    """A function of arguments of a kind: its equations, and results that are no arrays."""

    jaxpr: ClosedJaxpr
    structure: Any
    static: PyTree


class TracedFunction:
    """Traces a function for arguments of a kind, once until JAX's caches are cleared."""

    def __init__(self, function: Callable[..., Any]):
        self.function = function

    def __call__(self, *args: Any, **kwargs: Any) -> Traced:
        """Returns the equations for a kind, on the present device."""
        known, device = known_of(self, kind_of((args, kwargs))), config.default_device.value
        if device not in known:
            jaxpr, results, static = eqx.filter_make_jaxpr(self.function)(*args, **kwargs)
            known[device] = Traced(jaxpr, jax.tree.structure(results), static)
        return known[device]

    def forget(self, *args: Any, **kwargs: Any) -> None:
        """Forgets the equations for arguments of a kind, which take much memory."""
        known_of(self, kind_of((args, kwargs))).clear()


@weakref_lru_cache
def known_of(owner: Any, kind: Any) -> dict[Any, Any]:
    """Holds what was made for arguments of a kind, by device, until JAX's caches are cleared."""
    return {}


def kind_of(tree: PyTree) -> Any:
    """Returns what trees have in common that are compiled to the same program."""
    leaves, structure = jax.tree.flatten(tree)
    return structure, tuple(map(_kind_of_leaf, leaves))


def _kind_of_leaf(x: Any) -> Any:
    if isinstance(x, jax.Array):
        # What is weak takes the type of what it is combined with.
        return jax.typeof(x)
    # Numbers of different types are equal, but need not give the same program.
    return (x.shape, x.dtype) if isinstance(x, np.ndarray) else (type(x), x)
