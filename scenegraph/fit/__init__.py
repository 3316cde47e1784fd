"""Fitting: one pure step, schedules, the loop, presets and runs."""

from ._callbacks import (
    AbstractCallback as AbstractCallback,
    Deadline as Deadline,
    Every as Every,
    JsonLines as JsonLines,
    Progress as Progress,
)
from ._fit import (
    check_finite as check_finite,
    fit as fit,
    FitError as FitError,
    FitResult as FitResult,
    History as History,
)
from ._loss import RenderLoss as RenderLoss
from ._schedule import (
    LogLinear as LogLinear,
    mip_nerf_optimizer as mip_nerf_optimizer,
    scale_by_schedule as scale_by_schedule,
)
from ._state import FitState as FitState, start_state as start_state, StepInfo as StepInfo
from ._step import Loss as Loss, step as step
