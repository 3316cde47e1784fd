import jax
import jax.numpy as jnp

from .._typing import Array, Float, Int


def segment_prefix_sums(
    values: Float[Array, " n"], segment: Int[Array, " n"], longest: int
) -> Float[Array, " n"]:
    """Sums, in a list of sorted segments, what comes before each value in its own segment."""
    # Hillis and Steele 1986, "Data parallel algorithms": step by step, a value adds the partial sum
    # 1, 2, 4, ... places before it, where that is of the same segment (none is longer than
    # `longest`). Segments are summed by themselves, so that long lists lose no digits.
    padded = jnp.concatenate([jnp.full(longest, -1, segment.dtype), segment])

    def add(sums: Array, distance: Int[Array, ""]) -> tuple[Array, None]:
        start = longest - distance
        before = jax.lax.dynamic_slice(padded, (start,), segment.shape)
        earlier = jax.lax.dynamic_slice(jnp.pad(sums, (longest, 0)), (start,), segment.shape)
        return sums + jnp.where(before == segment, earlier, 0), None

    # Exclusive sums are inclusive ones of the values moved on by one place.
    same = jnp.concatenate([jnp.zeros(1, bool), segment[1:] == segment[:-1]])
    moved = jnp.where(same, jnp.roll(values, 1), 0)
    steps = 2 ** jnp.arange(max(1, (longest - 1).bit_length()))
    return jax.lax.scan(add, moved, jnp.minimum(steps, longest))[0]
