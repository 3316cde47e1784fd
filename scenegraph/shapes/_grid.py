import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .._typing import Array, Float, Scalar, Vector
from ..numerics import AbstractModule, as_float_leaf, safe_norm


class SampledDistance(AbstractModule):
    """A function of space given by samples on a grid, which quadratic B-splines interpolate.

    Its gradient is continuous, so that normals are. Outside of the box of the samples, the distance
    to that box is added.
    """

    values: Float[Array, "x y z"] = eqx.field(converter=as_float_leaf)
    lower: Vector = eqx.field(converter=as_float_leaf)
    upper: Vector = eqx.field(converter=as_float_leaf)

    def __check_init__(self):
        if min(self.values.shape) < 2:
            raise ValueError(
                f"`SampledDistance.values` must have at least two samples along each axis; "
                f"got shape {self.values.shape}."
            )

    def __call__(self, point: Vector) -> Scalar:
        """Interpolates the function at any point."""
        last = jnp.asarray(self.values.shape) - 1
        inside = jnp.clip(point, self.lower, self.upper)
        # In cells: the first sample is at 0, the last at n - 1.
        position = (inside - self.lower) / (self.upper - self.lower) * last
        nearest = jnp.round(position).astype(int)
        # Coefficients have one more in front: the window is nearest - 1 ... nearest + 1.
        window = jax.lax.dynamic_slice(_coefficients(self.values), nearest, (3, 3, 3))
        # The quadratic B-spline of the nearest sample and of its neighbours, axis by axis.
        x = position - nearest
        weights = jnp.stack([(0.5 - x) ** 2 / 2, 0.75 - x**2, (0.5 + x) ** 2 / 2])
        for along in weights.T:
            window = jnp.tensordot(along, window, 1, precision="highest")
        return window + safe_norm(point - inside)


def _coefficients(values: Array) -> Array:
    """Computes the splines' coefficients, with one more on each side that extends it linearly."""
    for axis, count in enumerate(values.shape):
        matrix = jnp.asarray(_from_values(count), values.dtype)
        values = jnp.moveaxis(
            jnp.tensordot(matrix, values, (1, axis), precision="highest"), 0, axis
        )
    return values


def _from_values(count: int) -> np.ndarray:
    """Returns the matrix from samples along a line to coefficients."""
    # Solves (c[i-1] + 6 c[i] + c[i+1]) / 8 = v[i]; a linear end, c[-1] = 2 c[0] - c[1], makes
    # the first equation c[0] = v[0].
    smooth = 0.75 * np.eye(count) + 0.125 * (np.eye(count, k=1) + np.eye(count, k=-1))
    smooth[[0, -1]] = np.eye(count)[[0, -1]]
    inner = np.linalg.inv(smooth)
    ends = 2 * inner[[0, -1]] - inner[[1, -2]]
    return np.concatenate([ends[:1], inner, ends[1:]])
