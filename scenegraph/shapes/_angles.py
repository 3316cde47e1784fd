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
