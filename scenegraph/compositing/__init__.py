"""From densities along a ray to weights, colour, opacity and depth."""

from ._volume import (
    composite as composite,
)
from ._volume import (
    expected_depth as expected_depth,
)
from ._volume import (
    interval_weights as interval_weights,
)
from ._volume import (
    optical_depths as optical_depths,
)
from ._volume import (
    over as over,
)
from ._volume import (
    transmittance as transmittance,
)
