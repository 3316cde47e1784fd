from collections.abc import Sequence

import equinox as eqx

from .._typing import Matrix3, Vector
from ..numerics import common_type, matmul
from ._base import AbstractTransform, inverse_matrix, rotate


class AffineMap(AbstractTransform):
    """A transform as plain numbers, such as the composition of a chain of transforms."""

    matrix: Matrix3
    translation: Vector
    keeps_angles: bool = eqx.field(static=True)

    def __init__(self, matrix: Matrix3, translation: Vector, keeps_angles: bool):
        self.matrix, self.translation, self.keeps_angles = matrix, translation, keeps_angles

    @property
    def is_similarity(self) -> bool:
        """True if angles are kept."""
        return self.keeps_angles

    def linear(self) -> Matrix3:
        return self.matrix

    def offset(self) -> Vector:
        return self.translation


def compose(transforms: Sequence[AbstractTransform]) -> AffineMap:
    """Composes transforms into one map; the first is applied last."""
    outer, *inner = transforms
    # Some compute in the default type, whatever the type of their leaves.
    dtype = common_type(transforms)
    matrix, translation = outer.linear().astype(dtype), outer.offset().astype(dtype)
    for transform in inner:
        # A (B x + b) + a = (A B) x + (A b + a)
        translation = rotate(matrix, transform.offset().astype(dtype)) + translation
        matrix = matmul(matrix, transform.linear().astype(dtype))
    return AffineMap(matrix, translation, all(x.is_similarity for x in transforms))


def invert(forward: AffineMap) -> AffineMap:
    """Inverts a map: `x = A y + a` becomes `y = A^-1 x - A^-1 a`."""
    matrix = inverse_matrix(forward.matrix)
    return AffineMap(matrix, -rotate(matrix, forward.translation), forward.keeps_angles)
