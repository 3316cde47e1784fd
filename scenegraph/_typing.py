"""Array aliases, the dimension vocabulary and the switch of the run-time shape checks.

Dimension names used everywhere: `height width` of a picture, `rays`, `samples` (intervals of a
ray) and `edges` (their bin edges), `levels`, `features`, `frames`, `pixels`, `channels`, `3` for
points, directions and colours, `""` for a scalar.
"""

import os
from collections.abc import Sequence
from typing import Any, SupportsIndex, TypeAlias

import jax
from jaxtyping import (
    AnnotationError,
    Array,
    ArrayLike,
    Bool,
    Float,
    Int,
    Integer,
    Key,
    PyTree,
    UInt8,
    UInt32,
)


Scalar = Float[Array, ""]
Vector = Float[Array, "3"]
Color = Float[Array, "3"]
Matrix3 = Float[Array, "3 3"]
Matrix4 = Float[Array, "4 4"]
ScalarLike = float | int | ArrayLike
# Also the integers of NumPy; `operator.index` makes Python's of them.
IntLike = SupportsIndex
VectorLike = Sequence[Any] | ArrayLike
RandomKey = Key[Array, ""]
# Type checkers take it for a variable.
Device: TypeAlias = jax.Device  # pyright: ignore[reportInvalidTypeForm]

TYPECHECK_VARIABLE = "SCENEGRAPH_TYPECHECK"


def typecheck_enabled() -> bool:
    """Returns false if `SCENEGRAPH_TYPECHECK` switches off the run-time check of shapes."""
    return os.environ.get(TYPECHECK_VARIABLE, "1").lower() not in ("0", "false", "off", "no")


def fits(value: Any, hint: Any) -> bool:
    """Returns true if a value is what an annotation allows."""
    from beartype import BeartypeConf
    from beartype.door import is_bearable

    try:
        # An int is welcome where a float is annotated, as Python's type rules have it.
        return is_bearable(value, hint, conf=BeartypeConf(is_pep484_tower=True))
    except AnnotationError:  # of axes whose size no argument before has given
        return True


__all__ = [
    "Array",
    "ArrayLike",
    "Bool",
    "Color",
    "Device",
    "Float",
    "Int",
    "IntLike",
    "Integer",
    "Matrix3",
    "Matrix4",
    "PyTree",
    "RandomKey",
    "Scalar",
    "ScalarLike",
    "UInt8",
    "UInt32",
    "Vector",
    "VectorLike",
    "fits",
    "typecheck_enabled",
]
