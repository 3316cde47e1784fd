from collections.abc import Callable

import equinox as eqx
import jax
from equinox import AbstractVar

from .._typing import Color, PyTree, RandomKey, Scalar, Vector
from ..encodings import AbstractEncoding, Positional
from ..numerics import AbstractModule
from ..rays import AbstractGaussian, Medium
from ._base import AbstractConditionedField
from ._network import RadianceNetwork


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
            # NeRF's regulariser: noise on the raw density, before its activation.
            noise = jax.random.normal(key, (), raw_density.dtype)
            raw_density = raw_density + self.density_noise * noise
        # The sigmoid, stretched from [0, 1] to [-padding, 1 + padding].
        rgb = jax.nn.sigmoid(raw_rgb) * (1 + 2 * self.rgb_padding) - self.rgb_padding
        return Medium(self.density(raw_density), rgb)


class AbstractRadianceMLP(AbstractConditionedField):
    """A field of one network over an encoding, such as those of NeRF and mip-NeRF."""

    network: AbstractVar[RadianceNetwork]
    encoding: AbstractVar[AbstractEncoding]
    view_encoding: AbstractVar[Positional | None]
    output: AbstractVar[RadianceOutput]

    def condition(self, view: Vector) -> PyTree:
        encoded = self.view_encoding.encode(view) if self.view_encoding else view
        return self.network.condition(encoded)

    def medium(
        self, gaussian: AbstractGaussian, condition: PyTree, *, key: RandomKey | None = None
    ) -> Medium:
        # sigma from gamma(mean, covariance) alone; rgb from that and the direction.
        hidden = self.network.hidden(self.encoding(gaussian))
        raw_density = self.network.density(hidden)[0]
        return self.output(raw_density, self.network.color(hidden, condition), key=key)

    def density(self, gaussian: AbstractGaussian) -> Scalar:
        hidden = self.network.hidden(self.encoding(gaussian))
        return self.output.density(self.network.density(hidden)[0])
