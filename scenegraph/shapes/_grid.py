import itertools

import equinox as eqx
import jax.numpy as jnp

from .._typing import Array, Float, Scalar, Vector
from ..numerics import AbstractModule, as_float_leaf, dot, safe_norm


class SampledDistance(AbstractModule):
    """A function of space given at the points of a grid, linear between them.

    **Arguments:**

    - `values`: at the points; at least two along each axis.
    - `lower`, `upper`: where the first and the last point are. Beyond them, the distance to the
      box is added.
    """

    values: Float[Array, "x y z"] = eqx.field(converter=as_float_leaf)
    lower: Vector = eqx.field(converter=as_float_leaf)
    upper: Vector = eqx.field(converter=as_float_leaf)

    def __check_init__(self):
        if min(self.values.shape) < 2:
            raise ValueError(f"a grid needs two points along each axis; got {self.values.shape}.")

    def __call__(self, point: Vector) -> Scalar:
        """The function at a point.

        **Arguments:**

        - `point`: anywhere.

        **Returns:**

        The interpolated value.
        """
        last = jnp.asarray(self.values.shape) - 1
        inside = jnp.clip(point, self.lower, self.upper)
        place = (inside - self.lower) / (self.upper - self.lower) * last
        cell = jnp.clip(jnp.floor(place).astype(int), 0, last - 1)
        share = place - cell
        corners = jnp.asarray(list(itertools.product((0, 1), repeat=3)))
        weights = jnp.prod(jnp.where(corners == 1, share, 1 - share), axis=1)
        _, ny, nz = self.values.shape
        flat = (cell + corners) @ jnp.asarray([ny * nz, nz, 1])
        return dot(weights, self.values.reshape(-1)[flat]) + safe_norm(point - inside)
