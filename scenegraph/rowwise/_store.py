"""Columns that are computed once.

XLA computes the places of a look-up again within each look-up, number by number. A loop over rows
is never taken apart, so what it returns is stored.
"""

import jax
import jax.numpy as jnp
from jax import lax

from .._typing import Array


def store(values: Array) -> Array:
    """Returns values as they are; compiled for a CPU, they are stored whatever uses them."""
    if jax.default_backend() != "cpu":
        return values
    idle, zero = jnp.zeros_like(values), jnp.zeros((), values.dtype)
    # XLA has rules of its own for a single operand. Axes stay apart: numbers that are computed for
    # one long axis get their places by division.
    keep, each = lambda _, row: tuple(row), (1,) * values.ndim
    return lax.reduce_window((values, idle), (zero, zero), keep, each, each, padding="VALID")[0]
