from collections.abc import Callable

import equinox as eqx
import jax

from .._typing import Color, RandomKey, Scalar
from ..numerics import AbstractModule
from ..rays import Medium


class RadianceOutput(AbstractModule):
    """Activations, bias, noise and padding, from the network's raw numbers to a medium."""

    density_activation: Callable = eqx.field(static=True)
    density_bias: float = eqx.field(static=True)
    density_noise: float = eqx.field(static=True)
    rgb_padding: float = eqx.field(static=True)

    def density(self, raw: Scalar) -> Scalar:
        """Returns `activation(raw + bias)`."""
        return self.density_activation(raw + self.density_bias)

    def __call__(self, raw_density: Scalar, raw_rgb: Color, *, key: RandomKey | None) -> Medium:
        if key is not None and self.density_noise > 0:
            noise = jax.random.normal(key, (), raw_density.dtype)
            raw_density = raw_density + self.density_noise * noise
        # The sigmoid, stretched from [0, 1] to [-padding, 1 + padding].
        rgb = jax.nn.sigmoid(raw_rgb) * (1 + 2 * self.rgb_padding) - self.rgb_padding
        return Medium(self.density(raw_density), rgb)
