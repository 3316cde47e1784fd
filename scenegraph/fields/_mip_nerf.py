from collections.abc import Callable

import jax

from .._typing import RandomKey
from ..encodings import AbstractEncoding, IntegratedPositional, Positional
from ._network import RadianceNetwork
from ._radiance_mlp import AbstractRadianceMLP, RadianceOutput


class MipNerfMLP(AbstractRadianceMLP):
    """mip-NeRF's field: a network over the integrated positional encoding of each section.

    The defaults are the paper's: 612,740 parameters.

    **Arguments:**

    - `width`, `depth`: the width and the number of layers of the trunk.
    - `skip`: number of layers after which the encoding enters again.
    - `view_width`, `view_depth`: the width and the number of layers of the colour head.
    - `encoding`: the encoding of the sample; `Positional(0, 16, identity=False, wrap=True)`
      switches integration off.
    - `view_degree`: number of octaves of the direction's positional encoding.
    - `use_view`: if true, colour depends on the direction.
    - `density_activation`, `density_bias`: function and constant in `activation(raw + bias)`, the
      density.
    - `density_noise`: standard deviation of noise added to the raw density when a key is given.
    - `rgb_padding`: the distance by which colours can exceed 0 and 1.
    - `key`: random key of the weights. Keyword only argument.

    **Source:** Barron et al. 2021, section 3, and the published code.
    """

    network: RadianceNetwork
    encoding: AbstractEncoding
    view_encoding: Positional | None
    output: RadianceOutput

    def __init__(
        self,
        width: int = 256,
        depth: int = 8,
        *,
        skip: int = 4,
        view_width: int = 128,
        view_depth: int = 1,
        encoding: AbstractEncoding = IntegratedPositional(0, 16),
        view_degree: int = 4,
        use_view: bool = True,
        density_activation: Callable = jax.nn.softplus,
        density_bias: float = -1.0,
        density_noise: float = 0.0,
        rgb_padding: float = 0.001,
        key: RandomKey,
    ):
        self.encoding = encoding
        self.view_encoding = Positional(0, view_degree) if use_view else None
        inputs = encoding.size, self.view_encoding.size if self.view_encoding else 0
        self.network = RadianceNetwork(*inputs, width, depth, skip, view_width, view_depth, key=key)
        self.output = RadianceOutput(density_activation, density_bias, density_noise, rgb_padding)
