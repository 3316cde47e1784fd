import functools

import jax
import jax.numpy as jnp

from .._typing import Array, Float


# `safe_trig_helper` of the published mip-NeRF code: beyond it, angles are taken modulo it.
_LIMIT = 100 * jnp.pi
# A sine and a cosine are computed afresh at every fourth octave; the doubling formulas between
# multiply the rounding error by at most eight (measured: 1.3e-6).
_FRESH = 4


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


@functools.partial(jax.custom_jvp, nondiff_argnums=(1, 2))
def octaves(
    x: Float[Array, " n"], first: int, last: int
) -> tuple[Float[Array, "octaves n"], Float[Array, "octaves n"]]:
    """Computes sines and cosines of `2**k x` for k from `first` to `last - 1`, one row a power."""
    angles = x * _powers(first, last, _FRESH, x.dtype)[:, None]
    # As a loop, because a compiler that sees all formulas at once computes the sine for each anew.
    _, waves = jax.lax.scan(_double_angle, (jnp.sin(angles), jnp.cos(angles)), length=_FRESH)
    # Octave `first` + 4 i + j is row i after j doublings.
    sines, cosines = (jnp.moveaxis(wave, 0, 1).reshape(-1, x.size) for wave in waves)
    return sines[: last - first], cosines[: last - first]


def _double_angle(waves: tuple[Array, Array], _) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
    # sin 2x = 2 sin x cos x, cos 2x = 1 - 2 sin^2 x
    sine, cosine = waves
    return (2 * sine * cosine, 1 - 2 * sine**2), waves


def _powers(first: int, last: int, step: int, dtype) -> Float[Array, " powers"]:
    return jnp.asarray([2.0**power for power in range(first, last, step)], dtype)


@octaves.defjvp
def _octaves_jvp(first: int, last: int, primals, tangents):
    sines, cosines = octaves(*primals, first, last)
    # d sin(2^k x) = 2^k cos(2^k x) dx
    turn = _powers(first, last, 1, sines.dtype)[:, None] * tangents[0]
    return (sines, cosines), (turn * cosines, -turn * sines)
