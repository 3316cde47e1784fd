"""Gradient checks, sample scenes, and data sets made from them."""

from ._dataset import make_dataset as make_dataset
from ._fisher import fisher as fisher
from ._gradients import check_gradients as check_gradients, gradient_table as gradient_table
from ._scenes import gallery_scene as gallery_scene, toy_scene as toy_scene
from ._table_top import table_top as table_top

# Internal: for other packages of the library, and for none of its users.
from ._dataset import straight_rgba
from ._gradients import GradientCheck

from .._first_use import finish_import


finish_import(__name__)
