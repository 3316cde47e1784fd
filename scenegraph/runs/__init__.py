"""Runs: settings, presets, run folders, checkpoints on disk, evaluation, reports and tables.

In reading order: the settings (`_method`, `_mipnerf`, `_grid`, `_data_settings`, `_training`,
`_corrections`, `_config`, `_presets`), and the parts of a fit that they make (`_recipe`); the state
of a fit on disk (`_checkpoint`, `_checkpoints`) and the run folder (`_run`); scores (`_scores`,
`_held_out`, `_evaluate`, `_residuals`), their texts (`_report`, `_tables`), films (`_paths`) and
meshes (`_refine_meshes`, `_export_run`); and a whole fit (`_time_plan`, `_callbacks`,
`_latest_picture`, `_final_report`, `_fit_options`, `_fit_run`).
"""

from ._callbacks import Profile as Profile, TensorBoard as TensorBoard
from ._checkpoint import load_state as load_state, save_state as save_state
from ._checkpoints import Checkpoints as Checkpoints
from ._corrections import CorrectionSettings as CorrectionSettings
from ._config import FitConfig as FitConfig, OutputSettings as OutputSettings
from ._data_settings import DataSettings as DataSettings
from ._evaluate import (
    compare as compare,
    evaluate as evaluate,
    evaluate_run as evaluate_run,
    find_measures as find_measures,
    Measures as Measures,
)
from ._export_run import export_run as export_run
from ._final_report import FinalReport as FinalReport
from ._fit_options import FitOptions as FitOptions
from ._fit_run import fit_run as fit_run
from ._grid import Grid as Grid
from ._method import AbstractMethod as AbstractMethod
from ._mipnerf import MipNerf as MipNerf
from ._paths import film_run as film_run, PathRequest as PathRequest
from ._presets import preset as preset, PRESETS as PRESETS
from ._refine_meshes import refine_meshes as refine_meshes
from ._recipe import FitParts as FitParts, make_scene as make_scene, prepare as prepare
from ._run import open_run as open_run, Run as Run
from ._scores import Scores as Scores
from ._time_plan import TimePlan as TimePlan
from ._training import TrainingSettings as TrainingSettings

# Internal: for other packages of the library, and for none of its users.
from ._checkpoint import Snapshot, take_snapshot
from ._config import field_name, MethodName, METHODS, PARTS, setting_names
from ._data_settings import held_out_split
from ._evaluate import Pace
from ._final_report import plot_log
from ._fit_options import Milestones, Processes, show_lines, Stopped, TooFewSteps
from ._paths import (
    describe_path,
    find_cameras,
    path_context,
    PathContext,
    PATHS,
    read_cameras,
    summarise_cameras,
)
from ._presets import differences, NOTES
from ._recipe import describe_cut
from ._report import latex, markdown, metric_table, report, Table
from ._run import next_free_run, read_log
from ._scores import mean_of_means, METRICS, summary
from ._tables import cautions, paper_tables, read_result, Result
