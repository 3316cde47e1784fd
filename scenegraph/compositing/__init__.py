"""From densities along a ray to weights, colour, opacity and depth."""

from ._layers import composite_layers as composite_layers, layer_weights as layer_weights
from ._volume import (
    composite as composite,
    interval_weights as interval_weights,
    over as over,
    transmittance as transmittance,
)

# Internal: for other packages of the library, and for none of its users.
from ._details import mean_normal, median_depth
from ._layers import composite_with_layers
from ._mixture import amounts, mix_media, mixture, with_unit_normals
from ._packed import composite_packed, packed_details
from ._volume import expected_depth, optical_depths
