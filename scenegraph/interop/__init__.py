"""Other frameworks: functions as PyTorch modules, and MuJoCo's models as scenes."""

from . import _mujoco as mujoco

from ._torch import as_torch_module as as_torch_module

from .._first_use import finish_import


finish_import(__name__)
