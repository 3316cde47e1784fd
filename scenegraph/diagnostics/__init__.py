"""Gradient checks, sample scenes and the self-made data set."""

from ._dataset import make_dataset as make_dataset, straight_rgba as straight_rgba
from ._gradients import (
    check_gradients as check_gradients,
    gradient_table as gradient_table,
    GradientCheck as GradientCheck,
)
from ._scenes import gallery_scene as gallery_scene, toy_scene as toy_scene
