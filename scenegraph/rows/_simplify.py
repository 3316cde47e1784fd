"""Algebraic simplification: only what holds for every number, infinities and NaN included.

So neither `0 x = 0` nor `0 / x = 0` nor `x - x = 0` nor `x / x = 1` is among the rules: with NaN
or infinities for `x`, each of them is NaN. The sign of a zero sum may differ (`-0 + 0` is `-0`
here), as in XLA's own simplifier.
"""

from collections.abc import Callable, Sequence
from typing import Any


def simplify(operation: str, x: Sequence[Any], dtype: Any) -> Any:
    """Returns the operand that an operation always equals, or `None` if there is none."""
    rule = _RULES.get(operation)
    return None if rule is None else rule(x, dtype)


def _is(node: Any, number: float) -> bool:
    return node.is_constant and node.value == number


def _product(x: Sequence[Any], dtype: Any) -> Any:
    # 1 x = x; for integers, which have neither NaN nor infinities, also 0 x = 0.
    if dtype.kind in "iub" and any(_is(node, 0) for node in x):
        return next(node for node in x if _is(node, 0))
    return x[1] if _is(x[0], 1) else x[0] if _is(x[1], 1) else None


def _sum(x: Sequence[Any], dtype: Any) -> Any:
    # 0 + x = x
    del dtype
    return x[1] if _is(x[0], 0) else x[0] if _is(x[1], 0) else None


def _difference(x: Sequence[Any], dtype: Any) -> Any:
    # x - 0 = x
    del dtype
    return x[0] if _is(x[1], 0) else None


def _quotient(x: Sequence[Any], dtype: Any) -> Any:
    # x / 1 = x
    del dtype
    return x[0] if _is(x[1], 1) else None


def _selection(x: Sequence[Any], dtype: Any) -> Any:
    # The chosen case where the choice is known; any case where all are the same.
    del dtype
    if x[0].is_constant:
        return x[1 + int(x[0].value)]
    return x[1] if all(node is x[1] for node in x[2:]) else None


def _conversion(x: Sequence[Any], dtype: Any) -> Any:
    return x[0] if x[0].dtype == dtype else None


_RULES: dict[str, Callable] = {
    "mul": _product,
    "add": _sum,
    "add_any": _sum,
    "sub": _difference,
    "div": _quotient,
    "select_n": _selection,
    "convert_element_type": _conversion,
    "copy": _conversion,
    "stop_gradient": _conversion,
}
