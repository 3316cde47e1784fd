import concurrent.futures
import hashlib
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax

from ._traced import default_device


# Programs that are in use, by what they compute: pictures and gradients of a scene have many pieces
# in common, whatever they are of.
_programs: weakref.WeakValueDictionary[Any, concurrent.futures.Future] = (
    weakref.WeakValueDictionary()
)


class Compiled:
    """A program of arrays of known types, which is compiled beside others.

    `weight` says how long it is, and `times` how often it computes what it says. Programs of equal
    keys compute the same.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        like: Sequence[Any],
        *,
        weight: int = 1,
        times: float = 1.0,
        donated: int | None = None,
        key: Any = None,
    ):
        self.weight, self.times = weight, times
        self.key = id(self) if key is None else key
        self._function, self._like, self._donated = function, like, donated
        self._program: Any = None

    def programs(self) -> list["Compiled"]:
        return [self]

    def compile(self, pool: concurrent.futures.Executor, options: Mapping[str, Any]) -> None:
        """Begins to compile: what needs Python is done at once, and the rest by the pool."""
        how = {"compiler_options": dict(options), "donate_argnums": self._donated}
        traced = jax.jit(self._function, keep_unused=True, **how).trace(*self._like)
        lowered = traced.lower()
        kind = _kind(traced, lowered, options)
        self._program = _programs.get(kind) or pool.submit(lowered.compile)
        _programs[kind] = self._program
        # Its equations take much memory.
        del self._function

    def share(self, other: "Compiled") -> None:
        """Takes the program of another one, which computes the same."""
        self._program = other._program
        del self._function

    def __call__(self, *values: Any) -> Any:
        """Computes, once it is compiled."""
        return self._program.result()(*values)


def _kind(traced: Any, lowered: Any, options: Mapping[str, Any]) -> Any:
    """Returns what equal programs share: what they compute, of which types, where and how."""
    text = lowered.as_text()
    if "jax.const" in text:  # What it computes depends on constants that are not in the text.
        return object()
    types = [(x.dtype, x.weak_type) for x in (*traced.jaxpr.in_avals, *traced.jaxpr.out_avals)]
    digest = hashlib.sha256(text.encode()).digest()
    where = default_device()
    return digest, tuple(types), traced.out_tree, tuple(sorted(options.items())), where


def like(aval: Any, *rows: int) -> jax.ShapeDtypeStruct:
    """Returns the type of an array, or of so many rows of such."""
    return jax.ShapeDtypeStruct((*rows, *aval.shape), aval.dtype, weak_type=aval.weak_type)
