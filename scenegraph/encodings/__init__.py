"""Positions and Gaussians to features: positional and integrated positional encoding."""

from ._positional import (
    AbstractEncoding as AbstractEncoding,
    IntegratedPositional as IntegratedPositional,
    Positional as Positional,
)
