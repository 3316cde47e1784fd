"""Affine maps between frames: similarity, affine, and poses that stay rigid when optimised."""

from ._affine import Affine as Affine
from ._ball import Ball as Ball
from ._base import AbstractTransform as AbstractTransform
from ._make import (
    rotate_about as rotate_about,
    rotate_euler as rotate_euler,
    scale as scale,
    translate as translate,
)
from ._pose import Pose as Pose
from ._similarity import Similarity as Similarity

# Internal: for other packages of the library, and for none of its users.
from ._affine import as_transform
from ._affine_map import AffineMap, compose, invert
from ._ball import everywhere, transform_ball
from ._base import Composed, Inverse, inverse_matrix, rotate

from .._first_use import finish_import


finish_import(__name__)
