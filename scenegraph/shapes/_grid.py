import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .._typing import Array, Float, Scalar, Vector
from ..numerics import AbstractModule, as_float_leaf, safe_norm


class SampledDistance(AbstractModule):
    """A function of space given at the points of a grid, and smooth between them.

    It goes through the values; its slope is continuous, so that normals are.

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
        nearest = jnp.round(place).astype(int)
        window = jax.lax.dynamic_slice(_coefficients(self.values), nearest, (3, 3, 3))
        for weights in _weights(place - nearest).T:
            window = jnp.tensordot(weights, window, 1)
        return window + safe_norm(point - inside)


def _weights(offset: Vector) -> Float[Array, "3 axes"]:
    """Of the nearest point and its neighbours: the quadratic B-spline."""
    return jnp.stack([(0.5 - offset) ** 2 / 2, 0.75 - offset**2, (0.5 + offset) ** 2 / 2])


def _coefficients(values: Array) -> Array:
    """Of the splines that go through the values; one more on each side, in line with the last."""
    for axis, count in enumerate(values.shape):
        matrix = jnp.asarray(_from_values(count), values.dtype)
        values = jnp.moveaxis(jnp.tensordot(matrix, values, (1, axis)), 0, axis)
    return values


def _from_values(count: int) -> np.ndarray:
    """The matrix from values along a line to coefficients."""
    smooth = 0.75 * np.eye(count) + 0.125 * (np.eye(count, k=1) + np.eye(count, k=-1))
    smooth[[0, -1]] = np.eye(count)[[0, -1]]
    inner = np.linalg.inv(smooth)
    ends = 2 * inner[[0, -1]] - inner[[1, -2]]
    return np.concatenate([ends[:1], inner, ends[1:]])
