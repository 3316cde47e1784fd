"""Cameras turn pixels into cones; paths are lists of cameras."""

from ._base import (
    AbstractCamera as AbstractCamera,
    check_resolution as check_resolution,
    pixel_centres as pixel_centres,
)
from ._ellipse import ellipse as ellipse
from ._interpolated import interpolate as interpolate
from ._moved import MovedCamera as MovedCamera
from ._orthographic import OrthographicCamera as OrthographicCamera
from ._path_file import CameraPath as CameraPath, read_camera_path as read_camera_path
from ._paths import orbit as orbit, spiral as spiral
from ._perspective import (
    focal_from_fov as focal_from_fov,
    PerspectiveCamera as PerspectiveCamera,
)
from ._poses import cameras_at as cameras_at, pose_matrix as pose_matrix
from ._scaled import scale_resolution as scale_resolution
