"""Radiance fields: density and colour everywhere, asked for a Gaussian at a time."""

from ._analytic import ConstantFog as ConstantFog, GaussianBlob as GaussianBlob
from ._base import (
    AbstractConditionedField as AbstractConditionedField,
    AbstractField as AbstractField,
)
from ._grid_field import GridField as GridField
from ._mip_nerf import MipNerfMLP as MipNerfMLP
from ._nerf import NerfMLP as NerfMLP
from ._network import (
    Dense as Dense,
    dense_layers as dense_layers,
    RadianceNetwork as RadianceNetwork,
)
from ._output import RadianceOutput as RadianceOutput
from ._radiance_mlp import AbstractRadianceMLP as AbstractRadianceMLP
