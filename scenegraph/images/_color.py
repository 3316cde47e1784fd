import jax.numpy as jnp

from .._typing import Array, Float


def linear_to_srgb(linear: Float[Array, "*batch"]) -> Float[Array, "*batch"]:
    """Encodes linear light as sRGB.

    **Arguments:**

    - `linear`: linear light, any shape; values above 1 are encoded by the same curve.

    **Returns:**

    The sRGB numbers, of the same shape.

    **Source:** IEC 61966-2-1.
    """
    # 12.92 L up to 0.0031308, above it 1.055 L^(1/2.4) - 0.055
    epsilon = jnp.finfo(jnp.float32).eps
    low = 323 / 25 * linear
    high = (211 * jnp.maximum(epsilon, linear) ** (5 / 12) - 11) / 200
    return jnp.where(linear <= 0.0031308, low, high)


def srgb_to_linear(srgb: Float[Array, "*batch"]) -> Float[Array, "*batch"]:
    """Decodes sRGB numbers to linear light.

    **Arguments:**

    - `srgb`: sRGB numbers, any shape.

    **Returns:**

    Linear light, of the same shape.

    **Source:** IEC 61966-2-1.
    """
    # V / 12.92 up to 0.04045, above it ((V + 0.055) / 1.055)^2.4
    epsilon = jnp.finfo(jnp.float32).eps
    low = 25 / 323 * srgb
    high = jnp.maximum(epsilon, (200 * srgb + 11) / 211) ** (12 / 5)
    return jnp.where(srgb <= 0.04045, low, high)
