import abc

import equinox as eqx
import jax.numpy as jnp
from equinox import AbstractVar

from .._typing import Array, Float, Matrix3, Scalar, Vector
from ..numerics import AbstractModule, as_float_leaf, einsum
from ..transforms import AbstractTransform


class AbstractGaussian(AbstractModule):
    """A Gaussian that stands for the region of space of one sample, and the ray's direction."""

    mean: AbstractVar[Vector]
    direction: AbstractVar[Vector]

    @abc.abstractmethod
    def variance(self) -> Vector:
        """Returns the diagonal of the covariance matrix, in units squared."""

    @abc.abstractmethod
    def covariance(self) -> Matrix3:
        """Returns the 3x3 covariance matrix, in units squared."""


class Gaussian(AbstractGaussian):
    """A Gaussian with rotational symmetry about the ray, which similarity transforms preserve.

    **Arguments:**

    - `mean`: the centre.
    - `direction`: the ray's direction, not normalised.
    - `along`: variance of `t` along the ray.
    - `across`: variance across the ray, in units squared.

    **Source:** mip-NeRF (Barron et al. 2021), equation 8.
    """

    mean: Vector = eqx.field(converter=as_float_leaf)
    direction: Vector = eqx.field(converter=as_float_leaf)
    along: Scalar = eqx.field(converter=as_float_leaf)
    across: Scalar = eqx.field(converter=as_float_leaf)

    def variance(self) -> Vector:
        # The diagonal of equation 8: along d^2 + across (1 - d^2 / |d|^2), elementwise.
        squares = self.direction**2
        return self.along * squares + self.across * (1 - squares / self._squared_length())

    def covariance(self) -> Matrix3:
        # Equation 8: along d d^T + across (1 - d d^T / |d|^2).
        outer = jnp.outer(self.direction, self.direction)
        unit = outer / self._squared_length()
        return self.along * outer + self.across * (jnp.eye(3, dtype=outer.dtype) - unit)

    def _squared_length(self) -> Scalar:
        return jnp.maximum(1e-10, jnp.sum(self.direction**2))


class FullGaussian(AbstractGaussian):
    """A Gaussian with any covariance, into which a general affine map turns a `Gaussian`.

    **Arguments:**

    - `mean`: the centre.
    - `direction`: the ray's direction, not normalised.
    - `spread`: the covariance matrix, in units squared.
    """

    mean: Vector = eqx.field(converter=as_float_leaf)
    direction: Vector = eqx.field(converter=as_float_leaf)
    spread: Matrix3 = eqx.field(converter=as_float_leaf)

    def variance(self) -> Vector:
        return jnp.diagonal(self.spread)

    def covariance(self) -> Matrix3:
        return self.spread


def transform_gaussian(
    transform: AbstractTransform, gaussian: AbstractGaussian
) -> AbstractGaussian:
    """Transforms a Gaussian: mean `M m + b`, covariance `M C M^T`; a similarity keeps its form."""
    mean = transform.point(gaussian.mean)
    direction = transform.direction(gaussian.direction)
    matrix = transform.linear()
    if isinstance(gaussian, Gaussian) and transform.is_similarity:
        # For M = s R with a rotation R, the squared Frobenius norm of M is 3 s^2.
        scale_squared: Float[Array, ""] = jnp.sum(matrix**2) / 3
        # `along` is a variance of t, which is the same number in every frame.
        return Gaussian(mean, direction, gaussian.along, gaussian.across * scale_squared)
    spread = einsum("ij,jk,lk->il", matrix, gaussian.covariance(), matrix)
    return FullGaussian(mean, direction, spread)
