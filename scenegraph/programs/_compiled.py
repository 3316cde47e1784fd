import concurrent.futures
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax


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
        self._program = pool.submit(jax.jit(self._function, **how).lower(*self._like).compile)
        # Its equations take much memory.
        del self._function

    def share(self, other: "Compiled") -> None:
        """Takes the program of another one, which computes the same."""
        self._program = other._program
        del self._function

    def __call__(self, *values: Any) -> Any:
        """Computes, once it is compiled."""
        return self._program.result()(*values)


def like(aval: Any, *rows: int) -> jax.ShapeDtypeStruct:
    """Returns the type of an array, or of so many rows of such."""
    return jax.ShapeDtypeStruct((*rows, *aval.shape), aval.dtype, weak_type=aval.weak_type)
