import abc

import equinox as eqx
import jax.numpy as jnp

from .._typing import Array, Float, Scalar
from ..numerics import AbstractModule, as_float_leaf, require_positive


class AbstractRobustLoss(AbstractModule):
    """A function `rho(r^2)` of residuals, of which `solve` minimises half the sum.

    `weight` is its derivative by `r^2`: with these weights, the gradient of a weighted sum of
    squares is that of the loss (iteratively reweighted least squares).
    """

    @abc.abstractmethod
    def cost(self, squares: Float[Array, " residuals"]) -> Float[Array, " residuals"]:
        """Computes the contributions of residuals.

        **Arguments:**

        - `squares`: the squares of the residuals, `residuals`.

        **Returns:**

        Their contributions, `residuals`.
        """

    @abc.abstractmethod
    def weight(self, squares: Float[Array, " residuals"]) -> Float[Array, " residuals"]:
        """Computes the weights of residuals, the derivatives of `cost`.

        **Arguments:**

        - `squares`: the squares of the residuals, `residuals`.

        **Returns:**

        Their weights, from 0 to 1, `residuals`.
        """


class LeastSquares(AbstractRobustLoss):
    """The sum of squares: every residual counts in full."""

    def cost(self, squares: Float[Array, " residuals"]) -> Float[Array, " residuals"]:
        return squares

    def weight(self, squares: Float[Array, " residuals"]) -> Float[Array, " residuals"]:
        return jnp.ones_like(squares)


class Huber(AbstractRobustLoss):
    """Huber's loss: quadratic for small residuals, linear for large ones.

    **Arguments:**

    - `scale`: the residual at which it becomes linear, in units of colour; positive. A few times
      the noise is usual.
    """

    scale: Scalar = eqx.field(converter=as_float_leaf)

    def __check_init__(self):
        require_positive(self, "scale")

    def cost(self, squares: Float[Array, " residuals"]) -> Float[Array, " residuals"]:
        # r^2, or 2 s |r| - s^2 where |r| > s
        large = squares > self.scale**2
        size = jnp.sqrt(jnp.where(large, squares, 1.0))
        return jnp.where(large, 2 * self.scale * size - self.scale**2, squares)

    def weight(self, squares: Float[Array, " residuals"]) -> Float[Array, " residuals"]:
        # 1, or s / |r|
        large = squares > self.scale**2
        return jnp.where(large, self.scale / jnp.sqrt(jnp.where(large, squares, 1.0)), 1.0)


class Cauchy(AbstractRobustLoss):
    """Cauchy's loss, the logarithm of a sum: large residuals hardly count.

    **Arguments:**

    - `scale`: the residual whose weight is one half, in units of colour; positive.
    """

    scale: Scalar = eqx.field(converter=as_float_leaf)

    def __check_init__(self):
        require_positive(self, "scale")

    def cost(self, squares: Float[Array, " residuals"]) -> Float[Array, " residuals"]:
        # s^2 log(1 + r^2 / s^2)
        return self.scale**2 * jnp.log1p(squares / self.scale**2)

    def weight(self, squares: Float[Array, " residuals"]) -> Float[Array, " residuals"]:
        # 1 / (1 + r^2 / s^2)
        return 1 / (1 + squares / self.scale**2)
