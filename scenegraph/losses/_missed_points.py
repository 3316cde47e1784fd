import jax.numpy as jnp

from .._typing import Array, Float, Scalar, ScalarLike


# A point lies within this part of its distance of where it is thought to be.
_TOLERANCE = 0.03


def missed_point(
    edges: Float[Array, " edges"],
    weights: Float[Array, " edges-1"],
    t: ScalarLike,
    *,
    tolerance: float = _TOLERANCE,
) -> Scalar:
    """Computes how far a ray is from being stopped where a point is known to lie, and no sooner.

    After URF's losses of empty space and of termination (Rematas et al. 2022), with a sharp kernel.
    """
    # O- adds up the weights of intervals that end before t - e t, and O+ of those that begin before
    # t + e t: the interval in which the point lies is right, however long it is.
    before = jnp.sum(jnp.where(edges[1:] <= (1 - tolerance) * t, weights, 0))
    until = jnp.sum(jnp.where(edges[:-1] <= (1 + tolerance) * t, weights, 0))
    # O-^2 + (1 - O+)^2
    return before**2 + (1 - until) ** 2
