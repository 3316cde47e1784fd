import abc

import equinox as eqx
import jax.numpy as jnp
from equinox import AbstractVar

from .._typing import Array, Float, Matrix3, Scalar, Vector
from ..numerics import AbstractModule, as_float_leaf
from ..transforms import AbstractTransform


class AbstractGaussian(AbstractModule):
    """The part of space that one sample stands for: a mean, a spread, and the ray's direction."""

    mean: AbstractVar[Vector]
    direction: AbstractVar[Vector]

    @abc.abstractmethod
    def variance(self) -> Vector:
        """The diagonal of the covariance.

        **Returns:**

        One variance an axis, in units squared.
        """

    @abc.abstractmethod
    def covariance(self) -> Matrix3:
        """The covariance matrix.

        **Returns:**

        3x3, in units squared.
        """


class Gaussian(AbstractGaussian):
    """A Gaussian that is round about the ray; similarity transforms keep it so.

    **Arguments:**

    - `mean`: the centre.
    - `direction`: of the ray, not normalised.
    - `along`: variance of `t` along the ray.
    - `across`: variance across the ray, in units squared.

    **Source:** mip-NeRF (Barron et al. 2021), equation 8.
    """

    mean: Vector = eqx.field(converter=as_float_leaf)
    direction: Vector = eqx.field(converter=as_float_leaf)
    along: Scalar = eqx.field(converter=as_float_leaf)
    across: Scalar = eqx.field(converter=as_float_leaf)

    def _across_share(self) -> Vector:
        squares = self.direction**2
        return squares / jnp.maximum(1e-10, jnp.sum(squares))

    def variance(self) -> Vector:
        return self.along * self.direction**2 + self.across * (1 - self._across_share())

    def covariance(self) -> Matrix3:
        outer = jnp.outer(self.direction, self.direction)
        unit = outer / jnp.maximum(1e-10, jnp.sum(self.direction**2))
        return self.along * outer + self.across * (jnp.eye(3, dtype=outer.dtype) - unit)


class FullGaussian(AbstractGaussian):
    """A Gaussian with any covariance: what a cone becomes under a general affine map.

    **Arguments:**

    - `mean`: the centre.
    - `direction`: of the ray, not normalised.
    - `spread`: the covariance matrix.
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
    """The same Gaussian in the transform's parent frame.

    **Arguments:**

    - `transform`: parent from child.
    - `gaussian`: in the child's frame.

    **Returns:**

    A `Gaussian` if the transform is a similarity and a `Gaussian` came in, else a `FullGaussian`.
    """
    mean = transform.point(gaussian.mean)
    direction = transform.direction(gaussian.direction)
    matrix = transform.linear()
    if isinstance(gaussian, Gaussian) and transform.is_similarity:
        scale_squared: Float[Array, ""] = jnp.sum(matrix**2) / 3
        return Gaussian(mean, direction, gaussian.along, gaussian.across * scale_squared)
    spread = jnp.einsum("ij,jk,lk->il", matrix, gaussian.covariance(), matrix, precision="highest")
    return FullGaussian(mean, direction, spread)
