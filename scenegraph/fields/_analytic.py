import equinox as eqx
import jax.numpy as jnp
from equinox import AbstractVar

from .._typing import Color, RandomKey, Scalar, Vector
from ..numerics import as_float_leaf, require_not_negative, require_positive, safe_sqrt
from ..rays import AbstractGaussian, Medium
from ..shapes import Box
from ..transforms import inverse_matrix, rotate
from ._base import AbstractBoundedField, AbstractField


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


# In standard deviations: as far as a cloud reaches, where its density is 4e-6 of the largest.
_REACH = 5.0
# The square of the least radius of a cloud, in lengths of the sample: a smaller one is as if it had
# this radius, and less density.
_LEAST = 1e-6


class GaussianBlob(AbstractAnalyticField, AbstractBoundedField):
    """A round cloud whose density falls off as a Gaussian.

    The density is averaged over the sample in closed form, as a convolution of two Gaussians.

    **Arguments:**

    - `center`: the centre.
    - `radius`: the standard deviation of the density; positive. With a radius of zero, which an
      optimiser may put in, there is nothing.
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
        # S = C / r^2 + 1: exp(-(m - c)^T S^-1 (m - c) / (2 r^2)) / sqrt(det S). With R^2 =
        # r^2 + e tr C, which is not zero where r is, and (r / R)^3 of it, there is as much of it.
        offset, covariance = gaussian.mean - self.center, gaussian.covariance()
        square = self.radius**2 + _LEAST * jnp.trace(covariance)
        empty = square < jnp.finfo(offset.dtype).tiny
        square = jnp.where(empty, 1, square)
        spread = covariance / square + jnp.eye(3, dtype=offset.dtype)
        squared = jnp.sum(offset * rotate(inverse_matrix(spread), offset))
        # det S = s_0 . (s_1 x s_2) by rows
        determinant = jnp.sum(spread[0] * jnp.cross(spread[1], spread[2]))
        falloff = jnp.exp(-0.5 * squared / square)
        share = jnp.abs(self.radius / jnp.sqrt(square)) ** 3
        density = self.extinction * share * falloff / safe_sqrt(determinant)
        return jnp.where(empty, 0, density)

    def bounding_box(self) -> Box:
        # No box is without extent, also of a cloud of radius zero, and far from the origin.
        number = jnp.finfo(self.center.dtype)
        half = _REACH * jnp.abs(self.radius) + 4 * number.eps * jnp.max(jnp.abs(self.center))
        return Box(self.center - half - number.tiny, self.center + half + number.tiny)
