"""Refusing numbers that no shape can have. Values that are being traced are not looked at."""

from typing import Any

import jax
import numpy as np
from jax.core import Tracer


def require_positive(owner: Any, *names: str) -> None:
    """Refuses fields that are not positive and finite.

    **Arguments:**

    - `owner`: a Module.
    - `names`: of its fields.

    **Errors:**

    `ValueError` with the class, the field and its value.
    """
    for name in names:
        _require(owner, name, "positive and finite", lambda x: np.isfinite(x) & (x > 0))


def require_finite(owner: Any, *names: str) -> None:
    """Refuses fields that are not finite.

    **Arguments:**

    - `owner`: a Module.
    - `names`: of its fields.

    **Errors:**

    `ValueError` with the class, the field and its value.
    """
    for name in names:
        _require(owner, name, "finite", np.isfinite)


def _require(owner: Any, name: str, rule: str, holds: Any) -> None:
    value = getattr(owner, name)
    if isinstance(value, Tracer) or not isinstance(value, jax.Array | np.ndarray):
        return
    if not np.all(holds(np.asarray(value))):
        raise ValueError(
            f"`{type(owner).__name__}.{name}` must be {rule}; got {np.asarray(value).tolist()}."
        )
