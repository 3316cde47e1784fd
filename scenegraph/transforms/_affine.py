from typing import ClassVar

import equinox as eqx

from .._typing import Matrix3, Vector
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
