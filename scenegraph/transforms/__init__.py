"""Affine maps between frames: similarity, affine, and poses that stay rigid when optimised."""

from ._affine import Affine as Affine
from ._ball import Ball as Ball
from ._base import AbstractTransform as AbstractTransform, rotate as rotate
from ._pose import Pose as Pose
from ._similarity import Similarity as Similarity

# Internal: for other packages of the library, and for none of its users.
from ._affine_map import AffineMap, compose, invert
from ._ball import everywhere, transform_ball
from ._base import Inverse, inverse_matrix
