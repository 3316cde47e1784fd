from collections.abc import Callable

import jax

from .._typing import RandomKey
from ..encodings import Positional
from ._network import RadianceNetwork
from ._radiance_mlp import AbstractRadianceMLP, RadianceOutput


class NerfMLP(AbstractRadianceMLP):
    """NeRF's field: a network over the positional encoding of points, without integration.

    **Arguments:**

    - `width`, `depth`, `skip`, `view_width`, `view_depth`, `view_degree`: sizes as in `MipNerfMLP`.
    - `degree`: number of octaves of the position's encoding, which begins with the position itself.
    - `density_activation`, `density_bias`, `density_noise`: the same as in `MipNerfMLP`.
    - `key`: random key of the weights. Keyword only argument.

    **Source:** Mildenhall et al. 2020, section 5.
    """

    network: RadianceNetwork
    encoding: Positional
    view_encoding: Positional
    output: RadianceOutput

    def __init__(
        self,
        width: int = 256,
        depth: int = 8,
        *,
        skip: int = 4,
        view_width: int = 128,
        view_depth: int = 1,
        degree: int = 10,
        view_degree: int = 4,
        density_activation: Callable = jax.nn.relu,
        density_bias: float = 0.0,
        density_noise: float = 0.0,
        key: RandomKey,
    ):
        self.encoding = Positional(0, degree)
        self.view_encoding = Positional(0, view_degree)
        inputs = self.encoding.size, self.view_encoding.size
        self.network = RadianceNetwork(*inputs, width, depth, skip, view_width, view_depth, key=key)
        self.output = RadianceOutput(density_activation, density_bias, density_noise, 0.0)
