"""Losses and metrics."""

from ._base import AbstractLoss as AbstractLoss
from ._base import LossTerms as LossTerms
from ._metrics import (
    average_error as average_error,
)
from ._metrics import (
    mse_to_psnr as mse_to_psnr,
)
from ._metrics import (
    psnr as psnr,
)
from ._metrics import (
    psnr_to_mse as psnr_to_mse,
)
from ._multi_level import MultiLevelLoss as MultiLevelLoss
from ._ssim import ssim as ssim
from ._ssim import ssim_map as ssim_map
