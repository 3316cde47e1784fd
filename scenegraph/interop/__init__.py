"""Other frameworks: functions as PyTorch modules, and MuJoCo's models as scenes."""

from . import _mujoco as mujoco

from ._torch import as_torch_module as as_torch_module

# Internal: by these names, files know them.
from ._mujoco_frames import CameraFrame, GeomFrame, LightFrame, SiteFrame
from ._mujoco_looks import Headlit
from ._mujoco_pixels import Pixels

from .._first_use import finish_import


finish_import(__name__)
