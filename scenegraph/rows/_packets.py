"""Packets: the rows that are computed together, of which a function may ask one thing."""

from typing import Any

import jax.numpy as jnp

from .._jax import batching, HAS_PRIMITIVES, mlir, Primitive
from .._typing import Array


any_in_packet_p: Any = None
if HAS_PRIMITIVES:
    any_in_packet_p = Primitive("any_in_packet")
    any_in_packet_p.def_impl(lambda flag: flag)
    any_in_packet_p.def_abstract_eval(lambda flag: flag)
    batching.primitive_batchers[any_in_packet_p] = lambda flags, axes: (
        any_in_packet_p.bind(*flags),
        axes[0],
    )
    mlir.register_lowering(
        any_in_packet_p, mlir.lower_fun(lambda flag: flag, multiple_results=False)
    )


def any_in_packet(flag: Array) -> Array:
    """Combines a flag of a row with those of the rows that are computed together with it.

    In a native kernel these are one vector of rows, which then walk together: a loop or a branch
    whose condition it is costs nothing for rows that stay out, and what it indexes is loaded once
    for all. Elsewhere every row is alone. Results must not depend on who walks with whom: whatever
    a row does for others has to leave its own results as they are.

    **Arguments:**

    - `flag`: a flag of a row, true or false.

    **Returns:**

    True if the flag is set, and perhaps if that of another row is.

    Example: the least of many numbers that is above that of a row; of most, no row of a packet
    looks closer.

    ```python
    def next_above(numbers, x):
        def look(i, best):
            found = (numbers[i] > x) & (numbers[i] < best)
            keep, take = (lambda best: best), (lambda best: jnp.where(found, numbers[i], best))
            return jax.lax.cond(sg.rows.any_in_packet(found), take, keep, best)

        return jax.lax.fori_loop(0, len(numbers), look, jnp.inf)


    found = sg.rows.map_rows(next_above, jnp.arange(100.0), jnp.array([2.5, 7.0]))
    ```
    """
    return any_in_packet_p.bind(flag) if HAS_PRIMITIVES else flag


def same_in_packet(number: Array) -> Array:
    """Returns an unsigned integer that all rows of a packet have in common.

    It is then known to be the same for all of them: what it indexes is loaded once.
    """
    bits = range(8 * number.dtype.itemsize)
    flag = lambda k: any_in_packet((number >> k) & 1 != 0)
    return sum((flag(k).astype(number.dtype) << k for k in bits), jnp.zeros((), number.dtype))
