"""MuJoCo's models as scenes, and their states as poses: `sg.interop.mujoco`."""

from ._mujoco_frames import (
    CameraFrame as CameraFrame,
    GeomFrame as GeomFrame,
    LightFrame as LightFrame,
    pose as pose,
    SiteFrame as SiteFrame,
)
from ._mujoco_looks import Headlit as Headlit
from ._mujoco_pixels import geom_numbers as geom_numbers, Pixels as Pixels
from ._mujoco_scene import load_model as load_model, scene_from_model as scene_from_model
