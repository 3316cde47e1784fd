from typing import Any, ClassVar

import equinox as eqx
import numpy as np
from jax.core import Tracer

from .._typing import Matrix3, Vector
from .._words import describe
from ..numerics import as_float_leaf, require_finite, require_invertible
from ._base import AbstractTransform


class Affine(AbstractTransform):
    """Any invertible matrix and a shift: shears and unequal scales included.

    Gaussians that pass through it keep a full covariance.

    **Arguments:**

    - `matrix`: the linear part, `3 3`, not singular.
    - `translation`: the child's origin in the parent, `3`.
    """

    matrix: Matrix3 = eqx.field(converter=as_float_leaf)
    translation: Vector = eqx.field(converter=as_float_leaf, default=(0.0, 0.0, 0.0))

    is_similarity: ClassVar[bool] = False

    def __check_init__(self):
        require_finite(self, "matrix", "translation")
        require_invertible(self, "matrix")

    def linear(self) -> Matrix3:
        return self.matrix

    def offset(self) -> Vector:
        return self.translation


def as_transform(value: Any) -> AbstractTransform:
    """Makes an `Affine` of a 4x4 matrix; transforms stay as they are."""
    if isinstance(value, AbstractTransform):
        return value
    if not isinstance(value, list | tuple) and not eqx.is_array_like(value):
        raise TypeError(f"a transform or a 4x4 matrix is wanted; got {describe(value)}")
    matrix = as_float_leaf(value)
    if matrix.shape != (4, 4):
        raise TypeError(f"a transform or a 4x4 matrix is wanted; got shape {matrix.shape}")
    if not isinstance(matrix, Tracer) and not np.allclose(matrix[3], [0, 0, 0, 1]):
        raise ValueError(
            f"the last row of a 4x4 matrix must be 0, 0, 0, 1; got {np.asarray(matrix[3]).tolist()}"
        )
    return Affine(matrix[:3, :3], matrix[:3, 3])
