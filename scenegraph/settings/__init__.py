"""The settings of a fit, presets, and the parts of a fit that they make.

`_method` with `_mipnerf` and `_grid`, `_data_settings`, `_training` and `_corrections` are groups
of settings; `_config` holds one of each, `_presets` names some. Read these first: they need no JAX.
`_space` decides what is left to the pictures, `_volumes` and `_resolutions` make the volume of a
method, `_placing` moves cameras as corrected, and `_recipe` makes scene, batches, loss and
optimiser; `_later` has their names.
"""

from typing import TYPE_CHECKING

from ._config import FitConfig as FitConfig, OutputSettings as OutputSettings
from ._corrections import CorrectionSettings as CorrectionSettings
from ._data_settings import DataSettings as DataSettings
from ._grid import Grid as Grid
from ._method import AbstractMethod as AbstractMethod
from ._mipnerf import MipNerf as MipNerf
from ._presets import preset as preset, PRESETS as PRESETS
from ._training import TrainingSettings as TrainingSettings

# Internal: for other packages of the library, and for none of its users.
from ._config import (
    config_of_record,
    config_record,
    field_name,
    MethodName,
    METHODS,
    PARTS,
    setting_names,
)
from ._data_settings import held_out_split
from ._presets import differences, NOTES
from ._ranges import check_direction, check_ranges, ranged
from .._first_use import names_on_first_use


if TYPE_CHECKING:
    from ._later import (
        alignment_rays,
        alignment_steps,
        BACKWARD,
        choose_space,
        describe_cut,
        FitParts,
        make_scene as make_scene,
        moved_cameras,
        place_cameras,
        prepare as prepare,
        RAYS,
        training_cameras,
        warm_up,
    )
else:
    __getattr__, __dir__ = names_on_first_use(__name__)
