"""Positions and Gaussians to features: positional and integrated positional encoding."""

from ._positional import (
    AbstractEncoding as AbstractEncoding,
)
from ._positional import (
    IntegratedPositional as IntegratedPositional,
)
from ._positional import (
    Positional as Positional,
)
