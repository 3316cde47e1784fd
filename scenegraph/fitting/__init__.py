"""Fitting: one pure step, the loop around it, losses of rays, callbacks and budgets.

Read `_keys`, `_state` and `_step` (with `_sizes`) first: a step is a pure function of the state.
Then `_fit`, the loop, and its parts: `_trainable` (leaves), `_loss` (rays), `_feed` (batches),
`_budget` (samples, occupancy), `_memory`, `_flat` (quick calls), `_last_step` (the clock),
`_history`, `_callbacks` and `_console`. `_migrate` and `_resample` take a state over to another
scene. `_corrections` makes cameras and colours of pictures leaves of the scene, `_polish` solves
for poses, and `_alignment` finds further cameras in it.
"""

from ._alignment import align_cameras as align_cameras
from ._callbacks import (
    AbstractCallback as AbstractCallback,
    Every as Every,
    JsonLines as JsonLines,
    Progress as Progress,
    StopOnSignal as StopOnSignal,
)
from ._console import Console as Console
from ._corrections import with_corrections as with_corrections
from ._fit import fit as fit, FitError as FitError, FitResult as FitResult
from ._keys import split_by_purpose as split_by_purpose
from ._last_step import Deadline as Deadline
from ._loss import RenderLoss as RenderLoss
from ._migrate import migrate as migrate
from ._polish import PosePolish as PosePolish
from ._state import FitState as FitState, start_state as start_state, StepInfo as StepInfo
from ._step import step as step

# Internal: for other packages of the library, and for none of its users.
from ._alignment import find_motion, move_cameras, poses_of
from ._console import progress_line, SignsOfLife
from ._history import History
from ._keys import Keys, shared_keys
from ._last_step import ENDLESS
from ._loss import empty_extra, pixel_cones, scene_cameras
from ._memory import check_address_space, free_memory, TooLarge
from ._polish import BEGIN
from ._step import Loss
from ._trainable import choose_trainable

from .._first_use import finish_import


finish_import(__name__)
