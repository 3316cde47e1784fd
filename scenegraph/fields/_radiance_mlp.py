from equinox import AbstractVar

from .._typing import PyTree, RandomKey, Scalar, Vector
from ..encodings import AbstractEncoding, Positional
from ..rays import AbstractGaussian, Medium
from ._base import AbstractConditionedField
from ._network import RadianceNetwork
from ._output import RadianceOutput


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
        hidden = self.network.hidden(self.encoding(gaussian))
        raw_density = self.network.density(hidden)[0]
        return self.output(raw_density, self.network.color(hidden, condition), key=key)

    def density(self, gaussian: AbstractGaussian) -> Scalar:
        hidden = self.network.hidden(self.encoding(gaussian))
        return self.output.density(self.network.density(hidden)[0])
