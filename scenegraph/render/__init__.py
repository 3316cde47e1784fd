"""`render` and `render_rays`."""

from ._rays import fold_keys as fold_keys
from ._rays import integrate as integrate
from ._rays import render_rays as render_rays
from ._render import render as render
