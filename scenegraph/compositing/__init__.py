"""From densities along a ray to weights, colour, opacity and depth."""

from ._volume import composite as composite, transmittance as transmittance

# Internal: for other packages of the library, and for none of its users.
from ._details import (
    mean_normal,
    mean_value,
    median_depth,
    strongest_surface,
    with_media_details,
)
from ._layers import composite_layers, composite_rows, composite_with_layers, layer_weights
from ._mixture import amounts, mix_media, mixture, with_unit_normals
from ._packed import composite_packed, packed_details
from ._volume import expected_depth, interval_weights, optical_depths, over

from .._first_use import finish_import


finish_import(__name__)
