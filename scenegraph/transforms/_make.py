"""Transforms by what they do: shifts, turns by an axis or by Euler angles, and scalings."""

import jax.numpy as jnp
import jaxlie
import numpy as np
from jax.core import Tracer

from .._typing import Array, Float, ScalarLike, Vector, VectorLike
from ..numerics import as_float_leaf, in_full_precision, safe_normalise
from ._affine import Affine
from ._similarity import Similarity


_AXES = {"x": (1.0, 0.0, 0.0), "y": (0.0, 1.0, 0.0), "z": (0.0, 0.0, 1.0)}


def translate(offset: VectorLike) -> Similarity:
    """Makes the transform that shifts.

    **Arguments:**

    - `offset`: the shift, in units of the parent, `3`.

    **Returns:**

    A similarity, whose leaf `translation` is the shift.
    """
    return Similarity(translation=offset)


def rotate_about(
    axis: VectorLike, angle: ScalarLike, center: VectorLike = (0.0, 0.0, 0.0)
) -> Similarity:
    """Makes the transform that turns about an axis, counter-clockwise seen from its tip.

    It is differentiable by all arguments; the leaf that an optimiser turns is its quaternion.

    **Arguments:**

    - `axis`: the direction of the axis, `3`, of any length but zero.
    - `angle`: the angle, in radians.
    - `center`: a point on the axis, `3`.

    **Returns:**

    A similarity.

    **Errors:**

    `ValueError` for an axis of length zero; one that is being traced is not checked.
    """
    axis, center = as_float_leaf(axis), as_float_leaf(center)
    if not isinstance(axis, Tracer) and not np.any(np.asarray(axis)):
        raise ValueError("`axis` of `rotate_about` must not be zero.")
    turn = Similarity(rotation=_quaternion(axis, as_float_leaf(angle)))
    # R (x - c) + c
    return Similarity(center - turn.direction(center), turn.rotation)


@in_full_precision
def rotate_euler(angles: VectorLike, order: str = "xyz") -> Similarity:
    """Makes the transform that turns by Euler angles.

    **Arguments:**

    - `angles`: the angles in the order of the turns, in radians, as many as `order` has letters.
    - `order`: the axes. In lower case they are those of the parent: `"xyz"` turns about x first,
      then about y, then about z, which is `Rz @ Ry @ Rx`. In upper case they are the child's,
      which have turned with it: `"XYZ"` is `Rx @ Ry @ Rz`. These are SciPy's conventions.

    **Returns:**

    A similarity.

    **Errors:**

    `ValueError` for another order, or another number of angles.
    """
    angles, fixed = as_float_leaf(angles), order == order.lower()
    if not order or not set(order) <= set("xyz" if fixed else "XYZ"):
        raise ValueError(f"`order` must be of the letters x, y, z or of X, Y, Z; got {order!r}.")
    if angles.shape != (len(order),):
        raise ValueError(
            f"`angles` must be {len(order)} numbers for {order!r}; got {angles.shape}."
        )
    turns = [
        jaxlie.SO3(_quaternion(jnp.asarray(_AXES[letter], angle.dtype), angle))
        for letter, angle in zip(order.lower(), angles, strict=True)
    ]
    # About fixed axes R_n ... R_2 R_1, about turning ones R_1 R_2 ... R_n.
    whole, *others = turns
    for turn in others:
        whole = turn @ whole if fixed else whole @ turn
    return Similarity(rotation=whole.wxyz)


def scale(factors: ScalarLike | VectorLike) -> Similarity | Affine:
    """Makes the transform that scales, equally or by axis.

    **Arguments:**

    - `factors`: one factor, or those along x, y and z, `3`; not zero.

    **Returns:**

    A similarity for one factor; else an affine map, under which cones no longer stay cones.
    """
    factors = as_float_leaf(factors)
    return Similarity(scale=factors) if factors.ndim == 0 else Affine(jnp.diag(factors))


def _quaternion(axis: Vector, angle: Float[Array, ""]) -> Float[Array, "4"]:
    # (cos(a / 2), sin(a / 2) n)
    half = 0.5 * angle
    return jnp.concatenate([jnp.cos(half)[None], jnp.sin(half) * safe_normalise(axis)])
