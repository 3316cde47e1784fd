import jax.numpy as jnp

from .._typing import Array, Float


def tangents(normal: Float[Array, "3"]) -> tuple[Float[Array, "3"], Float[Array, "3"]]:
    """Completes a unit vector to a right-handed orthonormal basis; x and y where it is z."""
    # Duff et al. 2017, "Building an Orthonormal Basis, Revisited".
    x, y, z = normal
    sign = jnp.where(z < 0, -1.0, 1.0).astype(normal.dtype)
    a = -1 / (sign + z)
    b = x * y * a
    u = jnp.stack([1 + sign * x**2 * a, sign * b, -sign * x])
    return u, jnp.stack([b, sign + y**2 * a, -y])
