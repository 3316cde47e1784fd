"""From densities along a ray to weights, colour, opacity and depth."""

from ._details import mean_normal as mean_normal, median_depth as median_depth
from ._layers import (
    composite_among as composite_among,
    composite_layers as composite_layers,
    layer_weights as layer_weights,
)
from ._listed import composite_listed as composite_listed, listed_details as listed_details
from ._volume import (
    composite as composite,
    expected_depth as expected_depth,
    interval_weights as interval_weights,
    optical_depths as optical_depths,
    over as over,
    transmittance as transmittance,
)
