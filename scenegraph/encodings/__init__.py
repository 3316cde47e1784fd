"""Encodings of positions, Gaussians and directions: sines, grids, spherical harmonics.

`_contraction` brings all of space into a ball, before it is encoded.
"""

from ._contraction import Contraction as Contraction
from ._grid import Grid as Grid
from ._positional import (
    AbstractEncoding as AbstractEncoding,
    IntegratedPositional as IntegratedPositional,
    Positional as Positional,
)
from ._spherical_harmonics import SphericalHarmonics as SphericalHarmonics

# Internal: for other packages of the library, and for none of its users.
from ._contraction import contract_length, expand_length

from .._first_use import finish_import


finish_import(__name__)
