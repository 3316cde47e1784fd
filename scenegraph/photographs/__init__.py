"""Photographs without poses, to captures: pictures with poses and lenses.

`_find_poses` is the whole; read `_records` and `_pictures` first, then `_video` and `_pairs`;
`_engine` is the program that calls COLMAP, `_process` starts it; `_capture` writes what was found,
with `_camera_picture`, and `_diagnosis` says why pictures have no pose.
"""

# Internal: for other packages of the library; users have `find_poses` and its records in `data`.
from ._capture import is_found_capture, longest_side, RESULT_FILE
from ._find_poses import estimate_seconds, find_poses, is_unfinished
from ._pictures import has_photographs
from ._process import require_engine
from ._records import FoundLens, FoundPoses, UnplacedPicture
from ._video import is_video

from .._first_use import finish_import


finish_import(__name__)
