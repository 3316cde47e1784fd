"""Runs: run folders, checkpoints on disk, evaluation, reports and tables.

Read `_checkpoint`, `_checkpoints` and `_fingerprint` for the state of a fit on disk, and `_run` for
the folder; then scores (`_scores`, `_held_out`, `_evaluate`, `_residuals`), their texts (`_report`,
`_tables`), films (`_paths`) and meshes (`_refine_meshes`, `_export_run`); and a whole fit
(`_time_plan`, `_callbacks`, `_latest_picture`, `_final_report`, `_fit_options`, `_fit_run`).
"""

from ._callbacks import Profile as Profile, TensorBoard as TensorBoard
from ._checkpoint import load_state as load_state, save_state as save_state
from ._checkpoints import Checkpoints as Checkpoints
from ._evaluate import (
    compare as compare,
    evaluate as evaluate,
    evaluate_run as evaluate_run,
    find_measures as find_measures,
)
from ._fit_options import FitOptions as FitOptions
from ._fit_run import fit_run as fit_run
from ._paths import film_run as film_run, PathRequest as PathRequest
from ._refine_meshes import refine_meshes as refine_meshes
from ._run import open_run as open_run, Run as Run
from ._scores import Scores as Scores

# Internal: for other packages of the library, and for none of its users.
from ._checkpoint import Snapshot, take_snapshot
from ._evaluate import Measures, Pace
from ._export_run import export_run
from ._final_report import FinalReport, plot_log
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
from ._report import latex, markdown, metric_table, report, Table
from ._run import next_free_run, read_log
from ._scores import mean_of_means, METRICS, summary
from ._tables import cautions, paper_tables, read_result, Result
from ._time_plan import TimePlan

from .._first_use import finish_import


finish_import(__name__)
