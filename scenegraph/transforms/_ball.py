"""Balls that bound things, and what an affine map makes of them."""

import jax.numpy as jnp

from .._typing import Array, Float
from ..numerics import AbstractModule, matmul, max_or_nan, safe_sqrt
from ._base import AbstractTransform


class Ball(AbstractModule):
    """A ball that holds something; an infinite radius stands for everywhere.

    **Arguments:**

    - `center`: the centre.
    - `radius`: the radius; infinite for things without bounds.
    """

    center: Float[Array, "*balls 3"]
    radius: Float[Array, "*balls"]


def everywhere(dtype: jnp.dtype = jnp.float32) -> Ball:
    """Returns the ball that holds all of space."""
    return Ball(jnp.zeros(3, dtype), jnp.asarray(jnp.inf, dtype))


def transform_ball(transform: AbstractTransform, ball: Ball) -> Ball:
    """Returns a ball that holds the image of a ball under an affine map."""
    matrix = transform.linear()
    # |A x|^2 = x' (A'A) x <= max_i sum_j |(A'A)_ij| |x|^2, with equality for similarities.
    gram = matmul(matrix.T, matrix)
    stretch = safe_sqrt(max_or_nan(jnp.sum(jnp.abs(gram), axis=1), 0))
    return Ball(transform.point(ball.center), stretch * ball.radius)
