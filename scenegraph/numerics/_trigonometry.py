import jax
import jax.numpy as jnp

from .._typing import Array, Float


# `safe_trig_helper` of the published mip-NeRF code: beyond it, angles are taken modulo it.
_LIMIT = 100 * jnp.pi


def _wrap(x: Float[Array, "*batch"]) -> Float[Array, "*batch"]:
    return jnp.where(jnp.abs(x) < _LIMIT, x, x % _LIMIT)


def safe_sin(x: Float[Array, "*batch"]) -> Float[Array, "*batch"]:
    """Computes the sine of `x`, taken modulo 100 pi beyond +-100 pi, as mip-NeRF does."""
    return jnp.sin(_wrap(x))


def safe_cos(x: Float[Array, "*batch"]) -> Float[Array, "*batch"]:
    """Computes the cosine of `x`, taken modulo 100 pi beyond +-100 pi, as mip-NeRF does."""
    return jnp.cos(_wrap(x))


def expected_sin(
    mean: Float[Array, "*batch"], variance: Float[Array, "*batch"]
) -> tuple[Float[Array, "*batch"], Float[Array, "*batch"]]:
    """Computes mean and variance of `sin(z)` for a normally distributed `z`."""
    # mip-NeRF (Barron et al. 2021), equations 11 and 12:
    # E[sin z] = exp(-var / 2) sin(mean)
    # E[sin^2 z] = (1 - exp(-2 var) cos(2 mean)) / 2, and Var = E[sin^2 z] - E[sin z]^2
    first = jnp.exp(-0.5 * variance) * safe_sin(mean)
    second = 0.5 * (1 - jnp.exp(-2 * variance) * safe_cos(2 * mean))
    return first, jax.nn.relu(second - first**2)
