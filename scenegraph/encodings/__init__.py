"""Encodings of positions, Gaussians and directions: sines, grids, spherical harmonics."""

from ._grid import Grid as Grid
from ._positional import (
    AbstractEncoding as AbstractEncoding,
    IntegratedPositional as IntegratedPositional,
    Positional as Positional,
)
from ._spherical_harmonics import SphericalHarmonics as SphericalHarmonics
