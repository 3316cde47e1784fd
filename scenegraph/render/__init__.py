"""`render` and `render_rays`."""

from ._chunks import choose_chunk as choose_chunk
from ._rays import fold_keys as fold_keys, integrate as integrate, render_rays as render_rays
from ._render import render as render
from ._warnings import check_scene as check_scene, report_overflow as report_overflow
