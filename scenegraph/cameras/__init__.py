"""Cameras turn pixels into cones; paths are lists of cameras."""

from ._base import (
    AbstractCamera as AbstractCamera,
    check_resolution as check_resolution,
    cone as cone,
    pixel_centres as pixel_centres,
)
from ._fisheye import FisheyeCamera as FisheyeCamera
from ._moved import MovedCamera as MovedCamera
from ._opencv import OpenCVCamera as OpenCVCamera
from ._orthographic import OrthographicCamera as OrthographicCamera
from ._panorama import PanoramaCamera as PanoramaCamera
from ._paths import orbit as orbit, spiral as spiral
from ._perspective import (
    focal_from_fov as focal_from_fov,
    PerspectiveCamera as PerspectiveCamera,
)
from ._scaled import scale_resolution as scale_resolution
