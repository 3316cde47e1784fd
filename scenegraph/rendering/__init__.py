"""`render`, `render_batch` and `render_rays`; `cast_rays`; films and folders of frames.

Read `_render`, then `_pixels` and `_chunks`: what is computed of which pixels together; `_batch`
has the pictures of many worlds.
"""

from ._batch import render_batch as render_batch
from ._cast import cast_rays as cast_rays
from ._film import Film as Film
from ._film_files import (
    AbstractFrameFiles as AbstractFrameFiles,
    Exr as Exr,
    Rows as Rows,
    SeparateFiles as SeparateFiles,
    Suite as Suite,
    write_film as write_film,
    write_frames as write_frames,
    write_still as write_still,
)
from ._passes import render_passes as render_passes
from ._rays import render_rays as render_rays
from ._render import render as render

# Internal: for other packages of the library, and for none of its users.
from ._chunks import choose_chunk
from ._film import resized
from ._film_files import Track
from ._rays import fold_keys, integrate, integrate_anyhow
from ._warnings import check_scene, report_overflow, say_violations

from .._first_use import finish_import


finish_import(__name__)
