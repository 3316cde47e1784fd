import jax.numpy as jnp

from .._typing import Array, Float, Scalar, Vector


def azimuth(outward: Float[Array, " n"]) -> Scalar:
    """Returns a direction's angle about the z axis, in radians from the x axis; 0 on the z axis."""
    x, y = outward[0], outward[1]
    # atan2 has no derivative at (0, 0).
    on_axis = (x == 0) & (y == 0)
    return jnp.arctan2(y, jnp.where(on_axis, 1.0, x))


def elevation(outward: Vector) -> Scalar:
    """Returns a unit vector's angle above the plane z = 0, in radians from -pi/2 to pi/2."""
    # The derivative of arcsin is infinite at -1 and 1.
    return jnp.arcsin(jnp.clip(outward[2], -0.999999, 0.999999))
