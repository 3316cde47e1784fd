"""Losses and metrics."""

from ._base import (
    AbstractLoss as AbstractLoss,
    AbstractRayLoss as AbstractRayLoss,
    LossTerms as LossTerms,
)
from ._flip import flip as flip, flip_map as flip_map, PIXELS_PER_DEGREE as PIXELS_PER_DEGREE
from ._lpips import load_lpips as load_lpips, Lpips as Lpips
from ._metrics import (
    average_error as average_error,
    mse_to_psnr as mse_to_psnr,
    psnr as psnr,
    psnr_to_mse as psnr_to_mse,
)
from ._multi_level import MultiLevelLoss as MultiLevelLoss
from ._proposal import missed_weight as missed_weight, ProposalLoss as ProposalLoss
from ._ssim import ssim as ssim, ssim_map as ssim_map
