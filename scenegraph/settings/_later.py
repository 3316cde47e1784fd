"""The names of `settings` that need JAX, which it gives on their first use."""

from .._first_use import finish_import
from ._placing import (
    alignment_rays as alignment_rays,
    alignment_steps as alignment_steps,
    BACKWARD as BACKWARD,
    moved_cameras as moved_cameras,
    place_cameras as place_cameras,
    RAYS as RAYS,
    training_cameras as training_cameras,
)
from ._recipe import (
    describe_cut as describe_cut,
    FitParts as FitParts,
    make_scene as make_scene,
    prepare as prepare,
    warm_up as warm_up,
)
from ._space import choose_space as choose_space


finish_import(__name__)
