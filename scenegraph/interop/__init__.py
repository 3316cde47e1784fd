"""Other frameworks: functions as PyTorch modules, and MuJoCo's models as scenes."""

from ._torch import as_torch_module as as_torch_module

# Internal: it loads the subpackage `mujoco`, whose names are public there.
from ._mujoco import pose

from .._first_use import finish_import


finish_import(__name__)
