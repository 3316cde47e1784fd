from collections.abc import Callable

import equinox as eqx
import jax

from .._typing import Color, RandomKey, Scalar
from ..numerics import AbstractModule
from ..rays import Medium


class RadianceOutput(AbstractModule):
    """What the last layer's numbers mean: activations, bias, noise and padding.

    **Arguments:**

    - `density_activation`, `density_bias`: density is `activation(raw + bias)`.
    - `density_noise`: standard deviation of noise added to the raw density when a key is given.
    - `rgb_padding`: the sigmoid is stretched to reach this far beyond 0 and 1.
    """

    density_activation: Callable = eqx.field(static=True)
    density_bias: float = eqx.field(static=True)
    density_noise: float = eqx.field(static=True)
    rgb_padding: float = eqx.field(static=True)

    def density(self, raw: Scalar) -> Scalar:
        """The density of a raw number, without noise.

        **Arguments:**

        - `raw`: from the network.

        **Returns:**

        The density.
        """
        return self.density_activation(raw + self.density_bias)

    def __call__(self, raw_density: Scalar, raw_rgb: Color, *, key: RandomKey | None) -> Medium:
        if key is not None and self.density_noise > 0:
            noise = jax.random.normal(key, (), raw_density.dtype)
            raw_density = raw_density + self.density_noise * noise
        rgb = jax.nn.sigmoid(raw_rgb) * (1 + 2 * self.rgb_padding) - self.rgb_padding
        return Medium(self.density(raw_density), rgb)
