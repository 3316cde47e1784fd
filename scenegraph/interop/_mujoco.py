"""Loads the subpackage `mujoco` with the package, so that `sg.interop.mujoco` is there."""

from .mujoco import pose as pose
