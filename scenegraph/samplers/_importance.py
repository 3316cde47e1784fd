import jax
import jax.numpy as jnp

from .._typing import Array, Float, RandomKey
from ..numerics import cumulative, inverse_cdf, max_blur


def resampling_weights(
    weights: Float[Array, " samples"], padding: float = 0.01
) -> Float[Array, " samples"]:
    """Blurs and pads weights to the histogram that mip-NeRF resamples from.

    **Source:** mip-NeRF (Barron et al. 2021), equation 18.
    """
    # w'_k = (max(w_{k-1}, w_k) + max(w_k, w_{k+1})) / 2 + padding
    return max_blur(weights) + padding


def strata(count: int, dtype, *, key: RandomKey | None = None) -> Float[Array, " n"]:
    """Draws sorted numbers in [0, 1), one in each equal part; evenly spaced without a key."""
    # u_i = i / n + U(0, 1/n - eps), or n numbers from 0 to 1 - eps: `sorted_piecewise_constant_pdf`
    # of the published mip-NeRF code.
    epsilon = float(jnp.finfo(jnp.float32).eps)
    if key is None:
        return jnp.linspace(0, 1 - epsilon, count, dtype=dtype)
    return jittered_strata(jax.random.uniform(key, (count,), dtype, maxval=1 / count - epsilon))


def jittered_strata(jitter: Float[Array, " n"]) -> Float[Array, " n"]:
    """Moves evenly spaced numbers up by jitter in [0, 1/n) each: sorted numbers in [0, 1)."""
    count = jitter.shape[0]
    epsilon = float(jnp.finfo(jnp.float32).eps)
    # The last i / n + u may round to 1; bounded as in `sorted_piecewise_constant_pdf`.
    starts = jnp.arange(count, dtype=jitter.dtype) * (1 / count)
    return jnp.minimum(starts + jitter, 1 - epsilon)


def resample(
    edges: Float[Array, " edges"],
    weights: Float[Array, " edges-1"],
    count: int,
    *,
    key: RandomKey | None = None,
) -> Float[Array, " n"]:
    """Draws new bin edges from a histogram, densely where its weights are large.

    **Arguments:**

    - `edges`: the histogram's bin edges in `t`, sorted, `edges`.
    - `weights`: the histogram, not negative, of any sum, `edges-1`.
    - `count`: the number of new intervals; static.
    - `key`: the key of the jitter; `None` for even quantiles. Keyword only argument.

    **Returns:**

    The new edges in `t`, sorted, `count + 1` of them, differentiable by edges and weights.
    """
    # t_i = F^-1(u_i), with F the distribution function of the histogram
    u = strata(count + 1, edges.dtype, key=key)
    return inverse_cdf(edges, cumulative(weights), u)
