"""Other frameworks: functions as PyTorch modules, and MuJoCo's models as scenes."""

from ._torch import as_torch_module as as_torch_module

# Internal: by these names, files know them; it loads `mujoco`.
from ._mujoco import CameraFrame, GeomFrame, Headlit, LightFrame, Pixels, SiteFrame

from .._first_use import finish_import


finish_import(__name__)
