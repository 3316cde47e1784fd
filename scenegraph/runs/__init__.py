"""Runs: settings, presets, run folders, checkpoints on disk, evaluation, reports and tables."""

from ._checkpoint import load_state as load_state, save_state as save_state
from ._checkpoints import Checkpoints as Checkpoints
from ._config import FitConfig as FitConfig, OutputSettings as OutputSettings
from ._data_settings import DataSettings as DataSettings
from ._evaluate import compare as compare, evaluate as evaluate
from ._grid import Grid as Grid
from ._markup import Table as Table
from ._measures import find_measures as find_measures, Measures as Measures
from ._method import AbstractMethod as AbstractMethod
from ._mipnerf import MipNerf as MipNerf
from ._plot import plot_log as plot_log, read_log as read_log
from ._presets import preset as preset, PRESETS as PRESETS
from ._profile import Profile as Profile
from ._recipe import FitParts as FitParts, make_scene as make_scene, prepare as prepare
from ._result import read_result as read_result, Result as Result
from ._run import open_run as open_run, Run as Run
from ._scores import Scores as Scores
from ._tables import metric_table as metric_table, paper_tables as paper_tables
from ._tensorboard import TensorBoard as TensorBoard
from ._training import TrainingSettings as TrainingSettings

# Internal: for other packages of the library, and for none of its users.
from ._checkpoint import Snapshot, take_snapshot
from ._config import config_record, field_name, MethodName, METHODS, PARTS, setting_names
from ._data_settings import held_out_split
from ._markup import latex, markdown
from ._presets import BASES, differences, PURPOSES
from ._protocol import protocol_of
from ._report import report
from ._result import cautions
from ._scores import mean_of_means, METRICS, summary
