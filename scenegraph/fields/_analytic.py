import equinox as eqx
import jax.numpy as jnp
from equinox import AbstractVar

from .._typing import Color, RandomKey, Scalar, Vector
from ..numerics import as_float_leaf, require_not_negative, require_positive, safe_sqrt
from ..rays import AbstractGaussian, Medium
from ..transforms import inverse_matrix, rotate
from ._base import AbstractField


class AbstractAnalyticField(AbstractField):
    """A field of one colour; subclasses give the density in closed form."""

    rgb: AbstractVar[Color]

    def __call__(
        self, gaussian: AbstractGaussian, view: Vector, *, key: RandomKey | None = None
    ) -> Medium:
        del view, key
        return Medium(self.density(gaussian), self.rgb)


class ConstantFog(AbstractAnalyticField):
    """A field of constant density and colour.

    **Arguments:**

    - `extinction`: the density, per unit length; at least zero.
    - `rgb`: the colour.
    """

    extinction: Scalar = eqx.field(converter=as_float_leaf)
    rgb: Color = eqx.field(converter=as_float_leaf)

    def __check_init__(self):
        require_not_negative(self, "extinction")

    def density(self, gaussian: AbstractGaussian) -> Scalar:
        del gaussian
        return self.extinction


class GaussianBlob(AbstractAnalyticField):
    """A round cloud whose density falls off as a Gaussian.

    The density is averaged over the sample in closed form, as a convolution of two Gaussians.

    **Arguments:**

    - `center`: the centre.
    - `radius`: the standard deviation of the density; positive.
    - `extinction`: the density at the centre, per unit length; at least zero.
    - `rgb`: the colour.
    """

    center: Vector = eqx.field(converter=as_float_leaf)
    radius: Scalar = eqx.field(converter=as_float_leaf)
    extinction: Scalar = eqx.field(converter=as_float_leaf)
    rgb: Color = eqx.field(converter=as_float_leaf)

    def __check_init__(self):
        require_positive(self, "radius")
        require_not_negative(self, "extinction")

    def density(self, gaussian: AbstractGaussian) -> Scalar:
        # The mean of exp(-|x - c|^2 / (2 r^2)) over a Gaussian with mean m and covariance C, with
        # S = C / r^2 + 1: exp(-(m - c)^T S^-1 (m - c) / (2 r^2)) / sqrt(det S).
        offset = gaussian.mean - self.center
        spread = gaussian.covariance() / self.radius**2 + jnp.eye(3, dtype=offset.dtype)
        squared = jnp.sum(offset * rotate(inverse_matrix(spread), offset))
        # det S = s_0 . (s_1 x s_2) by rows
        determinant = jnp.sum(spread[0] * jnp.cross(spread[1], spread[2]))
        falloff = jnp.exp(-0.5 * squared / self.radius**2)
        return self.extinction * falloff / safe_sqrt(determinant)
