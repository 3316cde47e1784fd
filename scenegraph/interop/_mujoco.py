"""The classes of `mujoco` by which files know its scenes."""

from .mujoco import (
    CameraFrame as CameraFrame,
    GeomFrame as GeomFrame,
    Headlit as Headlit,
    LightFrame as LightFrame,
    Pixels as Pixels,
    SiteFrame as SiteFrame,
)
