"""`render` and `render_rays`; films and folders of frames."""

from ._chunks import choose_chunk as choose_chunk
from ._film import Film as Film, resized as resized
from ._film_files import (
    AbstractFrameFiles as AbstractFrameFiles,
    Apart as Apart,
    Exr as Exr,
    Rows as Rows,
    Suite as Suite,
    write_film as write_film,
    write_frames as write_frames,
    write_still as write_still,
)
from ._rays import fold_keys as fold_keys, integrate as integrate, render_rays as render_rays
from ._render import render as render
from ._warnings import check_scene as check_scene, report_overflow as report_overflow
