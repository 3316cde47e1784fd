import jax
import jax.numpy as jnp

from .._typing import Array, Float, Int


def sums_before(
    values: Float[Array, " n"], run: Int[Array, " n"], longest: int
) -> Float[Array, " n"]:
    """In a list of several runs, the sum of what comes before each value in its own run.

    Every run is added up by itself, so that long lists lose no digits: step by step, a value takes
    what stands one, two, four, ... places before it, where that is of the same run.

    **Arguments:**

    - `values`: of all runs, one after the other.
    - `run`: to which each value belongs, in order.
    - `longest`: no run has more values; static.

    **Returns:**

    Zero for the first value of a run.

    **Source:** Hillis and Steele 1986, "Data parallel algorithms".
    """
    padded = jnp.concatenate([jnp.full(longest, -1, run.dtype), run])

    def add(sums: Array, distance: Int[Array, ""]) -> tuple[Array, None]:
        start = longest - distance
        before = jax.lax.dynamic_slice(padded, (start,), run.shape)
        earlier = jax.lax.dynamic_slice(jnp.pad(sums, (longest, 0)), (start,), run.shape)
        return sums + jnp.where(before == run, earlier, 0), None

    def shift(values: Array) -> Array:
        same = jnp.concatenate([jnp.zeros(1, bool), run[1:] == run[:-1]])
        return jnp.where(same, jnp.roll(values, 1), 0)

    steps = 2 ** jnp.arange(max(1, (longest - 1).bit_length()))
    return jax.lax.scan(add, shift(values), jnp.minimum(steps, longest))[0]
