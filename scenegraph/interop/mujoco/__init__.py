"""MuJoCo's models as scenes, and their states as poses.

Read `_scene`, then `_frames` for what moves, `_looks` and `_pixels`.
"""

from ._frames import (
    CameraFrame as CameraFrame,
    GeomFrame as GeomFrame,
    LightFrame as LightFrame,
    pose as pose,
    SiteFrame as SiteFrame,
)
from ._looks import Headlit as Headlit
from ._pixels import geom_numbers as geom_numbers, Pixels as Pixels
from ._scene import load_model as load_model, scene_from_model as scene_from_model

from ..._first_use import finish_import


finish_import(__name__)
