"""Losses of rendered rays, and metrics of pictures."""

from ._base import (
    AbstractLoss as AbstractLoss,
    AbstractRayLoss as AbstractRayLoss,
    LossTerms as LossTerms,
)
from ._flip import flip as flip
from ._lpips import load_lpips as load_lpips
from ._mesh_smoothness import (
    edge_length_spread as edge_length_spread,
    laplacian_roughness as laplacian_roughness,
    mesh_edges as mesh_edges,
    normal_roughness as normal_roughness,
)
from ._metrics import correct_color as correct_color, psnr as psnr
from ._multi_level import MultiLevelLoss as MultiLevelLoss
from ._proposal import ProposalLoss as ProposalLoss
from ._ssim import ssim as ssim

# Internal: for other packages of the library, and for none of its users.
from ._flip import flip_map, PIXELS_PER_DEGREE
from ._lpips import Lpips
from ._mesh_smoothness import MeshEdges
from ._metrics import average_error, mse_to_psnr, psnr_to_mse
from ._missed_points import missed_point
from ._proposal import missed_weight
from ._ssim import ssim_map

from .._first_use import finish_import


finish_import(__name__)
