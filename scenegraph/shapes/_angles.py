import jax.numpy as jnp

from .._typing import Array, Float, Scalar, Vector


def azimuth(outward: Float[Array, " n"]) -> Scalar:
    """The angle about the z axis, from the x axis.

    **Arguments:**

    - `outward`: a direction, or its x and y alone.

    **Returns:**

    Radians, from -pi to pi; 0 on the axis.
    """
    x, y = outward[0], outward[1]
    on_axis = (x == 0) & (y == 0)
    return jnp.arctan2(y, jnp.where(on_axis, 1.0, x))


def elevation(outward: Vector) -> Scalar:
    """The angle above the plane z = 0.

    **Arguments:**

    - `outward`: a direction of length one.

    **Returns:**

    Radians, from -pi/2 to pi/2.
    """
    return jnp.arcsin(jnp.clip(outward[2], -0.999999, 0.999999))


def tangents(normal: Vector) -> tuple[Vector, Vector]:
    """Two directions at right angles to a third and to each other.

    **Arguments:**

    - `normal`: of length one.

    **Returns:**

    `(u, v)`, of length one; x and y where the normal is z.

    **Source:** Duff et al. 2017, "Building an Orthonormal Basis, Revisited".
    """
    x, y, z = normal
    sign = jnp.where(z < 0, -1.0, 1.0).astype(normal.dtype)
    a = -1 / (sign + z)
    b = x * y * a
    u = jnp.stack([1 + sign * x**2 * a, sign * b, -sign * x])
    return u, jnp.stack([b, sign + y**2 * a, -y])
