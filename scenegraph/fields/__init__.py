"""Radiance fields: density and colour of space, averaged over one Gaussian at a time."""

from ._analytic import ConstantFog as ConstantFog, GaussianBlob as GaussianBlob
from ._base import (
    AbstractAppearanceField as AbstractAppearanceField,
    AbstractBoundedField as AbstractBoundedField,
    AbstractConditionedField as AbstractConditionedField,
    AbstractField as AbstractField,
)
from ._grid_field import GridField as GridField
from ._mip_nerf import MipNerfMLP as MipNerfMLP
from ._nerf import NerfMLP as NerfMLP

# Internal: for other packages of the library, and for none of its users.
from ._network import Dense, dense_layers, RadianceNetwork
from ._radiance_mlp import AbstractRadianceMLP, RadianceOutput

from .._first_use import finish_import


finish_import(__name__)
