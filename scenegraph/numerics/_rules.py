"""Checks of fields at construction. Values that are being traced are not checked."""

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar
from typing import Any, NamedTuple

import jax
import numpy as np
from jax.core import Tracer

from ._frozen import is_frozen


_checks = ContextVar("checks", default=True)


class Violation(NamedTuple):
    """A field that breaks a rule."""

    owner: Any
    field: str
    rule: str


_violations: ContextVar[list[Violation] | None] = ContextVar("violations", default=None)


@contextlib.contextmanager
def collect_violations() -> Iterator[list[Violation]]:
    """Lists fields that break a rule, instead of refusing them."""
    found: list[Violation] = []
    token = _violations.set(found)
    try:
        yield found
    finally:
        _violations.reset(token)


@contextlib.contextmanager
def any_values() -> Iterator[None]:
    """Accepts any values of fields: what an optimiser left is loaded as it is."""
    token = _checks.set(False)
    try:
        yield
    finally:
        _checks.reset(token)


def require_positive(owner: Any, *names: str) -> None:
    """Refuses fields that are not positive and finite."""
    for name in names:
        _require(owner, name, "positive and finite", lambda x: np.isfinite(x) & (x > 0))


def require_not_negative(owner: Any, *names: str) -> None:
    """Refuses fields that are negative or not finite."""
    for name in names:
        _require(owner, name, "finite and not negative", lambda x: np.isfinite(x) & (x >= 0))


def require_at_least(owner: Any, least: float, *names: str) -> None:
    """Refuses fields that are smaller than a number, or not finite."""
    for name in names:
        rule = f"finite and at least {least:.4g}"
        _require(owner, name, rule, lambda x: np.isfinite(x) & (x >= least))


def require_at_most(owner: Any, most: float, *names: str) -> None:
    """Refuses fields that are larger than a number."""
    for name in names:
        _require(owner, name, f"at most {most:.4g}", lambda x: x <= most)


def require_fraction(owner: Any, *names: str) -> None:
    """Refuses fields that are not between 0 and 1."""
    for name in names:
        _require(owner, name, "between 0 and 1", lambda x: (x >= 0) & (x <= 1))


def require_finite(owner: Any, *names: str) -> None:
    """Refuses fields that are not finite."""
    for name in names:
        _require(owner, name, "finite", np.isfinite)


def require_finite_rows(owner: Any, *names: str) -> None:
    """Refuses tables, or `None`, with numbers that are not finite; names the first such row."""
    for name in names:
        value = getattr(owner, name)
        if not (_checks.get() and _is_known(value)):
            continue
        value = np.asarray(value)
        if np.all(np.isfinite(value)):
            continue
        wrong = np.flatnonzero(~np.all(np.isfinite(value), axis=-1))
        if len(wrong):
            raise ValueError(
                f"`{type(owner).__name__}.{name}[{wrong[0]}]` is {value[wrong[0]].tolist()}; all "
                f"its numbers must be finite ({len(wrong)} of {len(value)} rows are not). Correct "
                "these rows, or leave them out."
            )


def require_nonzero(owner: Any, *names: str) -> None:
    """Refuses vectors and numbers that are zero or not finite."""
    for name in names:
        _require(owner, name, "finite and not zero", lambda x: np.isfinite(x) & np.any(x != 0))


def require_invertible(owner: Any, *names: str) -> None:
    """Refuses matrices without an inverse."""
    for name in names:
        _require(owner, name, "invertible", lambda x: np.linalg.cond(x) < 1e7)


def require_order(owner: Any, lower: str, upper: str) -> None:
    """Refuses a field `lower` that is not below the field `upper`."""
    limit = getattr(owner, upper)
    # Shapes that do not fit are refused by the check of shapes.
    if _is_known(limit) and np.shape(limit) == np.shape(getattr(owner, lower)):
        rule = f"below `{upper}` = {np.asarray(limit).tolist()}"
        _require(owner, lower, rule, lambda x: x < np.asarray(limit))


def _require(owner: Any, name: str, rule: str, holds: Any) -> None:
    value = getattr(owner, name)
    value = value.value if is_frozen(value) else value
    if _checks.get() and _is_known(value) and not np.all(holds(np.asarray(value))):
        if (found := _violations.get()) is not None:
            found.append(Violation(owner, name, rule))
            return
        raise ValueError(
            f"`{type(owner).__name__}.{name}` must be {rule}; got {np.asarray(value).tolist()}."
        )


def _is_known(value: Any) -> bool:
    return isinstance(value, jax.Array | np.ndarray) and not isinstance(value, Tracer)
