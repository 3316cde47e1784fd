import functools

import jax
import jax.numpy as jnp

from .._typing import Array, Float


# A sine and a cosine are computed afresh at every fourth octave; the doubling formulas between
# multiply the rounding error by at most eight (measured: 1.3e-6).
_FRESH = 4


@functools.partial(jax.custom_jvp, nondiff_argnums=(1, 2))
def octaves(
    x: Float[Array, " n"], first: int, last: int
) -> tuple[Float[Array, "octaves n"], Float[Array, "octaves n"]]:
    """Sines and cosines of `x` times powers of two.

    **Arguments:**

    - `x`: radians.
    - `first`, `last`: the powers are `2**first` to `2**(last - 1)`; static.

    **Returns:**

    `(sines, cosines)`, one row a power.
    """
    sines, cosines = [], []
    for power in range(first, last):
        if (power - first) % _FRESH == 0:
            sine, cosine = jnp.sin(x * 2.0**power), jnp.cos(x * 2.0**power)
        else:
            sine, cosine = 2 * sines[-1] * cosines[-1], 1 - 2 * sines[-1] ** 2
        sines.append(sine)
        cosines.append(cosine)
    return jnp.stack(sines), jnp.stack(cosines)


@octaves.defjvp
def _octaves_jvp(first: int, last: int, primals, tangents):
    sines, cosines = octaves(*primals, first, last)
    powers = jnp.asarray([2.0**power for power in range(first, last)], sines.dtype)
    turn = powers[:, None] * tangents[0]
    return (sines, cosines), (turn * cosines, -turn * sines)
