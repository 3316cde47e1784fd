"""Fitting: one pure step, schedules, the loop, settings, evaluation and run folders."""

from ._by_path import by_path as by_path, within as within
from ._callbacks import (
    AbstractCallback as AbstractCallback,
    Deadline as Deadline,
    Every as Every,
    JsonLines as JsonLines,
    Progress as Progress,
)
from ._checkpoint import (
    load_state as load_state,
    save_state as save_state,
    Snapshot as Snapshot,
    take_snapshot as take_snapshot,
)
from ._checkpoints import Checkpoints as Checkpoints
from ._config import FitConfig as FitConfig
from ._console import Console as Console, progress_line as progress_line
from ._evaluate import compare as compare, evaluate as evaluate
from ._fit import (
    fit as fit,
    FitError as FitError,
    FitResult as FitResult,
)
from ._history import History as History
from ._layout import gather_whole as gather_whole, Layout as Layout
from ._loss import cones as cones, empty_extra as empty_extra, RenderLoss as RenderLoss
from ._markup import latex as latex, markdown as markdown, Table as Table
from ._measures import find_measures as find_measures, Measures as Measures
from ._memory import (
    check_address_space as check_address_space,
    free_memory as free_memory,
    TooLarge as TooLarge,
)
from ._migrate import migrate as migrate
from ._plot import plot_log as plot_log, read_log as read_log
from ._presets import (
    BASES as BASES,
    differences as differences,
    preset as preset,
    PRESETS as PRESETS,
    PURPOSES as PURPOSES,
)
from ._profile import Profile as Profile
from ._protocol import protocol_of as protocol_of
from ._recipe import (
    find_box as find_box,
    find_hull as find_hull,
    format_options as format_options,
    load_views as load_views,
    make_batches as make_batches,
    make_field as make_field,
    make_integrator as make_integrator,
    make_loss as make_loss,
    make_optimizer as make_optimizer,
    make_scene as make_scene,
    make_schedule as make_schedule,
)
from ._report import report as report
from ._result import cautions as cautions, read_result as read_result, Result as Result
from ._run import open_run as open_run, Run as Run
from ._schedule import (
    LogLinear as LogLinear,
    mip_nerf_optimizer as mip_nerf_optimizer,
    scale_by_schedule as scale_by_schedule,
)
from ._scores import (
    mean_of_means as mean_of_means,
    METRICS as METRICS,
    Scores as Scores,
    summary as summary,
)
from ._signals import StopOnSignal as StopOnSignal
from ._state import FitState as FitState, start_state as start_state, StepInfo as StepInfo
from ._step import Loss as Loss, step as step
from ._tables import (
    metric_table as metric_table,
    paper_tables as paper_tables,
)
from ._tensorboard import TensorBoard as TensorBoard
