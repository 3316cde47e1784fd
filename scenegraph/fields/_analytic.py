import equinox as eqx
import jax.numpy as jnp

from .._typing import Color, RandomKey, Scalar, Vector
from ..numerics import as_float_leaf, require_not_negative, require_positive, safe_sqrt
from ..rays import AbstractGaussian, Medium
from ..transforms import inverse_matrix, rotate
from ._base import AbstractField


class ConstantFog(AbstractField):
    """The same density and colour everywhere.

    **Arguments:**

    - `extinction`: the density, per unit length; at least zero.
    - `rgb`: the colour.
    """

    extinction: Scalar = eqx.field(converter=as_float_leaf)
    rgb: Color = eqx.field(converter=as_float_leaf)

    def __check_init__(self):
        require_not_negative(self, "extinction")

    def __call__(
        self, gaussian: AbstractGaussian, view: Vector, *, key: RandomKey | None = None
    ) -> Medium:
        del view, key
        return Medium(self.density(gaussian), self.rgb)

    def density(self, gaussian: AbstractGaussian) -> Scalar:
        del gaussian
        return self.extinction


class GaussianBlob(AbstractField):
    """A round cloud whose density falls off as a Gaussian.

    The density is averaged over the sample in closed form: a convolution of two Gaussians.

    **Arguments:**

    - `center`: of the cloud.
    - `radius`: its standard deviation; positive.
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

    def __call__(
        self, gaussian: AbstractGaussian, view: Vector, *, key: RandomKey | None = None
    ) -> Medium:
        del view, key
        return Medium(self.density(gaussian), self.rgb)

    def density(self, gaussian: AbstractGaussian) -> Scalar:
        offset = gaussian.mean - self.center
        spread = gaussian.covariance() / self.radius**2 + jnp.eye(3, dtype=offset.dtype)
        distance_squared = jnp.sum(offset * rotate(inverse_matrix(spread), offset))
        volume = jnp.sum(spread[0] * jnp.cross(spread[1], spread[2]))
        return (
            self.extinction * jnp.exp(-0.5 * distance_squared / self.radius**2) / safe_sqrt(volume)
        )
