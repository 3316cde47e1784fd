from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
import jaxlie

from .._typing import Array, Float, Matrix3, Scalar, Vector
from ..numerics import as_float_leaf, in_full_precision, require_finite, require_nonzero
from ._base import AbstractTransform


class Similarity(AbstractTransform):
    """Scales uniformly, then rotates, then shifts. Angles are kept, so a cone stays a cone.

    **Arguments:**

    - `translation`: the child's origin in the parent, `3`.
    - `rotation`: a quaternion `(w, x, y, z)`, `4`; normalised on use, so that it can be optimised
      freely.
    - `scale`: the number of parent units in a child unit; not zero.
    """

    translation: Vector = eqx.field(converter=as_float_leaf, default=(0.0, 0.0, 0.0))
    rotation: Float[Array, "4"] = eqx.field(converter=as_float_leaf, default=(1.0, 0.0, 0.0, 0.0))
    scale: Scalar = eqx.field(converter=as_float_leaf, default=1.0)

    is_similarity: ClassVar[bool] = True

    def __check_init__(self):
        require_finite(self, "translation")
        require_nonzero(self, "rotation", "scale")

    @in_full_precision
    def linear(self) -> Matrix3:
        # scale R(q / |q|)
        rotation = jaxlie.SO3(self.rotation / jnp.linalg.norm(self.rotation))
        return self.scale * rotation.as_matrix()

    def offset(self) -> Vector:
        return self.translation
