"""Random numbers of paths: a hash of counters, in a few instructions of a kernel."""

import jax
import jax.numpy as jnp
from jax.typing import DTypeLike

from .._typing import Array, Float, UInt32


def key_words(keys: Array) -> UInt32[Array, "rays 2"]:
    """Returns two words of every key."""
    words = jax.random.key_data(keys).astype(jnp.uint32)
    return jnp.stack([words[:, 0], words[:, -1]], axis=1)


def uniform_numbers(
    words: UInt32[Array, "2"], sample: Array, counter: Array | int, dtype: DTypeLike
) -> Float[Array, "4"]:
    """Returns four random numbers between 0 and 1, both excluded.

    The hash is `pcg4d` of Jarzynski and Olano 2020, "Hash Functions for GPU Rendering".
    """
    values = words[0], words[1], sample, counter
    x, y, z, w = (
        jnp.asarray(value).astype(jnp.uint32) * jnp.uint32(1664525) + jnp.uint32(1013904223)
        for value in values
    )
    x, y, z, w = _mixed(x, y, z, w)
    x, y, z, w = (value ^ (value >> jnp.uint32(16)) for value in (x, y, z, w))
    bits = jnp.stack(_mixed(x, y, z, w)) >> jnp.uint32(9)
    return (bits.astype(dtype) + 0.5) * 2.0**-23


def _mixed(x: Array, y: Array, z: Array, w: Array) -> tuple[Array, Array, Array, Array]:
    x += y * w
    y += z * x
    z += x * y
    w += y * z
    return x, y, z, w
