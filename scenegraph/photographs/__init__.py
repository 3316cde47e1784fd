"""Photographs without poses, to captures: pictures with poses and lenses.

`_find_poses` is the whole; read `_records` and `_pictures` first, then `_video` and `_pairs`;
`_engine` is the program that calls COLMAP, `_process` starts it; `_capture` writes what was found,
with `_camera_picture`, and `_diagnosis` says why pictures have no pose.
"""

from ._find_poses import find_poses as find_poses
from ._records import (
    FoundLens as FoundLens,
    FoundPoses as FoundPoses,
    UnplacedPicture as UnplacedPicture,
)

# Internal: for other packages of the library, and for none of its users.
from ._capture import is_found_capture, longest_side, RESULT_FILE
from ._find_poses import estimate_seconds
from ._pictures import has_photographs
from ._process import require_engine
from ._video import is_video

from .._first_use import finish_import


finish_import(__name__)
