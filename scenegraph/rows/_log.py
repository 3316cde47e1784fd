"""The log of compilations: which function of a row, why, how large, how long, native or not."""

import dataclasses
import logging
from collections.abc import Sequence
from typing import Any


compile_log = logging.getLogger("scenegraph.compile")
"""The logger of compilations, one line each at the level `INFO`."""


@dataclasses.dataclass(frozen=True)
class _Signature:
    """A function of a row as far as its program depends on it."""

    structure: int
    shapes: tuple[tuple[int, ...], ...]
    dtypes: tuple[str, ...]


# The last signature of every function, by its name.
_last: dict[str, _Signature] = {}


def _sign(jaxpr: Any, kinds: Sequence[int]) -> _Signature:
    """Returns what a program of a function of one row depends on: not how many rows there are."""
    avals = jaxpr.in_avals
    return _Signature(
        # A jaxpr's text has its equations and static values, in the order of tracing.
        hash(f"{tuple(map(int, kinds))} {jaxpr.jaxpr}"),
        tuple(x.shape for x in avals),
        tuple(str(x.dtype) for x in avals),
    )


def say(name: str, jaxpr: Any, kinds: Sequence[int], how: str, seconds: float) -> None:
    """Logs a compilation, and why there is one."""
    if not compile_log.isEnabledFor(logging.INFO):
        return
    new, old = _sign(jaxpr, kinds), _last.get(name)
    _last[name] = new
    compile_log.info("%s: %s, %.2f s (%s)", name, how, seconds, _why(old, new))


def _why(old: _Signature | None, new: _Signature) -> str:
    if old is None:
        return "first time"
    if old == new:
        return "in another program"
    if len(old.shapes) != len(new.shapes):
        return f"{len(new.shapes)} operands, before {len(old.shapes)}"
    for what, ours, theirs in (
        ("shape", new.shapes, old.shapes),
        ("dtype", new.dtypes, old.dtypes),
    ):
        changed = [k for k in range(len(ours)) if ours[k] != theirs[k]]
        if changed:
            k = changed[0]
            return f"{what} of operand {k}: {ours[k]}, before {theirs[k]}"
    return "other operations, or another static value"
