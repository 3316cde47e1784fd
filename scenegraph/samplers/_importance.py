import jax
import jax.numpy as jnp

from .._typing import Array, Float, RandomKey
from ..numerics import cumulative, inverse_cdf, max_blur


def resampling_weights(
    weights: Float[Array, " samples"], padding: float = 0.01
) -> Float[Array, " samples"]:
    """What mip-NeRF resamples from: blurred weights, with a little everywhere.

    **Arguments:**

    - `weights`: of the level before.
    - `padding`: added to each, so that no interval is forgotten.

    **Returns:**

    The histogram to draw from; its sum is not one.

    **Source:** mip-NeRF (Barron et al. 2021), equation 18.
    """
    return max_blur(weights) + padding


def strata(count: int, dtype, *, key: RandomKey | None = None) -> Float[Array, " n"]:
    """Numbers in [0, 1): evenly spaced, or one at random in each of `count` equal parts.

    **Arguments:**

    - `count`: how many; static.
    - `dtype`: their floating type.
    - `key`: of the jitter; `None` for even spacing. Keyword only argument.

    **Returns:**

    Sorted numbers.

    **Source:** `sorted_piecewise_constant_pdf` of the published mip-NeRF code.
    """
    epsilon = float(jnp.finfo(jnp.float32).eps)
    if key is None:
        return jnp.linspace(0, 1 - epsilon, count, dtype=dtype)
    return jittered_strata(jax.random.uniform(key, (count,), dtype, maxval=1 / count - epsilon))


def jittered_strata(jitter: Float[Array, " n"]) -> Float[Array, " n"]:
    """Evenly spaced numbers, each moved up by its own jitter.

    **Arguments:**

    - `jitter`: in [0, 1/n).

    **Returns:**

    Sorted numbers in [0, 1).
    """
    count = jitter.shape[0]
    epsilon = float(jnp.finfo(jnp.float32).eps)
    starts = jnp.arange(count, dtype=jitter.dtype) * (1 / count)
    return jnp.minimum(starts + jitter, 1 - epsilon)


def resample(
    edges: Float[Array, " edges"],
    weights: Float[Array, " edges-1"],
    count: int,
    *,
    key: RandomKey | None = None,
) -> Float[Array, " n"]:
    """Draws new bin edges where a histogram says that something is.

    **Arguments:**

    - `edges`: of the histogram, sorted.
    - `weights`: not negative, of any sum.
    - `count`: how many new intervals; static.
    - `key`: of the jitter; `None` for even quantiles. Keyword only argument.

    **Returns:**

    `count + 1` sorted values of `t`, differentiable by edges and weights.
    """
    u = strata(count + 1, edges.dtype, key=key)
    return inverse_cdf(edges, cumulative(weights), u)
