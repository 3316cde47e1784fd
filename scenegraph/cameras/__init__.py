"""Cameras turn pixels into cones; paths are lists of cameras.

Read `_base` first (the contract, and how a line becomes a cone) and `_intrinsics`; then the cameras
`_perspective`, `_orthographic`, `_panorama`, `_lens` with `_opencv` and `_fisheye`, `_ndc`,
`_moved` and `_rolling_shutter`; `_poses` and `_scaled`; the paths `_paths`, `_ellipse`,
`_interpolated`, `_loop`, `_llff_paths` and `_path_file`; `_orientation` finds what is up.
"""

from ._base import AbstractCamera as AbstractCamera, cone as cone
from ._ellipse import ellipse as ellipse
from ._fisheye import FisheyeCamera as FisheyeCamera
from ._interpolated import interpolate as interpolate
from ._llff_paths import llff_spiral as llff_spiral, spherified_circle as spherified_circle
from ._loop import loop as loop
from ._ndc import NDCCamera as NDCCamera
from ._opencv import OpenCVCamera as OpenCVCamera
from ._orthographic import OrthographicCamera as OrthographicCamera
from ._panorama import PanoramaCamera as PanoramaCamera
from ._paths import orbit as orbit, spiral as spiral
from ._perspective import PerspectiveCamera as PerspectiveCamera
from ._poses import pose_matrix as pose_matrix
from ._rolling_shutter import RollingShutter as RollingShutter

# Internal: for other packages of the library, and for none of its users.
from ._base import pixel_centres
from ._llff_paths import average_pose, recentre_poses, spherify_poses
from ._loop import find_loop
from ._moved import MovedCamera
from ._ndc import line_to_ndc
from ._orientation import common_up
from ._path_file import CameraPath, read_camera_path
from ._perspective import focal_from_fov
from ._poses import cameras_at
from ._scaled import scale_resolution

from .._first_use import finish_import


finish_import(__name__)
