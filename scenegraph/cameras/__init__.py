"""Cameras turn pixels into cones; paths are lists of cameras."""

from ._base import (
    AbstractCamera as AbstractCamera,
    check_resolution as check_resolution,
    cone as cone,
    pixel_centres as pixel_centres,
)
from ._ellipse import ellipse as ellipse
from ._fisheye import FisheyeCamera as FisheyeCamera
from ._interpolated import interpolate as interpolate
from ._llff_paths import (
    average_pose as average_pose,
    llff_spiral as llff_spiral,
    recentre_poses as recentre_poses,
    spherified_circle as spherified_circle,
    spherify_poses as spherify_poses,
)
from ._moved import MovedCamera as MovedCamera
from ._ndc import bend_line as bend_line, NDCCamera as NDCCamera
from ._opencv import OpenCVCamera as OpenCVCamera
from ._orthographic import OrthographicCamera as OrthographicCamera
from ._panorama import PanoramaCamera as PanoramaCamera
from ._path_file import CameraPath as CameraPath, read_camera_path as read_camera_path
from ._paths import orbit as orbit, spiral as spiral
from ._perspective import (
    focal_from_fov as focal_from_fov,
    PerspectiveCamera as PerspectiveCamera,
)
from ._poses import cameras_at as cameras_at, pose_matrix as pose_matrix
from ._scaled import scale_resolution as scale_resolution
