"""Interpolation between levels that are even steps apart."""

import jax.numpy as jnp
import numpy as np

from .._typing import Array, Float, Scalar
from ._products import matmul
from ._safe import clip_within


def between_levels(levels: Float[Array, "levels 3"], part: Scalar) -> Float[Array, "3"]:
    """Interpolates between the first level, at a part of 0, and the last one, at 1."""
    # Linear between levels: L_0 + sum_i s_i (L_(i+1) - L_i), with the part s_i of step i that is
    # passed. At a level the derivative is the mean of both sides; at the ends, that from inside.
    last = levels.shape[0] - 1
    step = np.arange(last)
    passed = jnp.clip(
        clip_within(part, 0, 1) * last - step,
        jnp.asarray(np.where(step == 0, -np.inf, 0), part.dtype),
        jnp.asarray(np.where(step == last - 1, np.inf, 1), part.dtype),
    )
    # The weight of level i is s_(i-1) - s_i, where s_-1 = 1 and s_last = 0.
    ends = jnp.ones_like(passed[:1]), jnp.zeros_like(passed[:1])
    weights = jnp.concatenate([ends[0], passed]) - jnp.concatenate([passed, ends[1]])
    return matmul(weights, levels)
