"""Arrays of many nodes, stacked and taken apart by numpy: XLA compiles a millisecond for each."""

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from ._compiled import Compiled


_NAMES = "stack", "unstack"


def computes_on_host(equation: Any, fewest: float) -> bool:
    """Returns true if an equation stacks, or takes apart, at least so many arrays of numbers."""
    if equation.primitive.name not in _NAMES:
        return False
    atoms = *equation.invars, *equation.outvars
    return len(atoms) > fewest and all(isinstance(x.aval.dtype, np.dtype) for x in atoms)


class OnHost:
    """A `stack` or an `unstack`, computed by numpy."""

    def __init__(self, equation: Any):
        self._name, self._axis = equation.primitive.name, equation.params["axis"]

    def programs(self) -> list[Compiled]:
        return []

    def __call__(self, *values: Any) -> Sequence[Any]:
        arrays = [np.asarray(x) for x in values]
        if self._name == "stack":
            return [jax.device_put(np.stack(arrays, self._axis), _device_of(values[0]))]
        return jax.device_put(list(np.moveaxis(arrays[0], self._axis, 0)), _device_of(values[0]))


def _device_of(value: Any) -> Any:
    """Returns where an array has to be; `None` where it may be anywhere."""
    return value.sharding if isinstance(value, jax.Array) and value.committed else None
