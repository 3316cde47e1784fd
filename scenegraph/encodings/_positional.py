import abc

import equinox as eqx
import jax.numpy as jnp

from .._typing import Array, Float, Vector
from ..numerics import AbstractModule, octaves, safe_sin
from ..rays import AbstractGaussian


class AbstractEncoding(AbstractModule):
    """Turns a Gaussian in space into features for a network."""

    @property
    @abc.abstractmethod
    def size(self) -> int:
        """The number of features."""

    @abc.abstractmethod
    def __call__(self, gaussian: AbstractGaussian) -> Float[Array, " features"]:
        """Encodes one sample.

        **Arguments:**

        - `gaussian`: the sample's Gaussian.

        **Returns:**

        The features, `size` of them.
        """


class IntegratedPositional(AbstractEncoding):
    """Sines and cosines of the position, averaged over the Gaussian.

    Frequencies that are finer than the Gaussian fade away. Order: all sines (degree by degree,
    x y z in each), then all cosines.

    **Arguments:**

    - `min_degree`, `max_degree`: the degrees, the last one excluded; frequencies are `2**degree`.

    **Source:** mip-NeRF (Barron et al. 2021), equations 13 and 14.
    """

    min_degree: int = eqx.field(static=True, default=0)
    max_degree: int = eqx.field(static=True, default=16)

    @property
    def size(self) -> int:
        return 6 * (self.max_degree - self.min_degree)

    def __call__(self, gaussian: AbstractGaussian) -> Float[Array, " features"]:
        # E[sin(2^l x)] = exp(-4^l var / 2) sin(2^l mean), likewise the cosine
        sines, cosines = octaves(gaussian.mean, self.min_degree, self.max_degree)
        scales = _scales(self.min_degree, self.max_degree, sines.dtype)
        damping = jnp.exp(-0.5 * (scales**2)[:, None] * gaussian.variance())
        return jnp.concatenate([damping * sines, damping * cosines]).reshape(-1)


class Positional(AbstractEncoding):
    """Sines and cosines of the position itself, as in NeRF: the Gaussian's spread is ignored.

    **Arguments:**

    - `min_degree`, `max_degree`: the degrees, the last one excluded; frequencies are `2**degree`.
    - `identity`: if true, the position itself comes first.
    - `wrap`: if true, angles beyond +-100 pi are reduced as `safe_sin` does, which is how the
      published mip-NeRF code encodes when its integration is switched off.

    **Source:** NeRF (Mildenhall et al. 2020), equation 4, without the factor pi.
    """

    min_degree: int = eqx.field(static=True, default=0)
    max_degree: int = eqx.field(static=True, default=10)
    identity: bool = eqx.field(static=True, default=True)
    wrap: bool = eqx.field(static=True, default=False)

    @property
    def size(self) -> int:
        return 6 * (self.max_degree - self.min_degree) + 3 * self.identity

    def __call__(self, gaussian: AbstractGaussian) -> Float[Array, " features"]:
        return self.encode(gaussian.mean)

    def encode(self, x: Vector) -> Float[Array, " features"]:
        """Encodes a point or direction as `size` features."""
        # (sin(2^l x), sin(2^l x + pi/2)): cosines are sines a quarter of a turn on
        scales = _scales(self.min_degree, self.max_degree, x.dtype)
        angles = (scales[:, None] * x).reshape(-1)
        sine = safe_sin if self.wrap else jnp.sin
        waves = sine(jnp.concatenate([angles, angles + 0.5 * jnp.pi]))
        return jnp.concatenate([x, waves]) if self.identity else waves


def _scales(min_degree: int, max_degree: int, dtype) -> Float[Array, " degrees"]:
    return jnp.asarray([2.0**degree for degree in range(min_degree, max_degree)], dtype=dtype)
