"""The ranges of settings, each beside its field, and their check."""

import dataclasses
import math
from typing import Any


_RANGE = "range"


@dataclasses.dataclass(frozen=True)
class Range:
    """The finite numbers from `least` to `most`; the ends belong to it, unless it is `open`."""

    least: float = -math.inf
    most: float = math.inf
    open: bool = False  # Neither end is allowed.

    def holds(self, value: float) -> bool:
        """Returns true for a number of the range; false for one that is not finite."""
        if not math.isfinite(value):
            return False
        if self.open:
            return self.least < value < self.most
        return self.least <= value <= self.most

    def __str__(self) -> str:
        low, high = (f"{x:,}" if isinstance(x, int) else f"{x:g}" for x in (self.least, self.most))
        if math.isinf(self.least) and math.isinf(self.most):
            return "finite"
        if math.isinf(self.most):
            return f"above {low}, and finite" if self.open else f"at least {low}, and finite"
        return f"between {low} and {high}{', ends excluded' if self.open else ''}"


def ranged(
    default: Any, least: float = -math.inf, most: float = math.inf, *, open: bool = False
) -> Any:
    """Makes the field of a setting whose numbers have a range."""
    return dataclasses.field(default=default, metadata={_RANGE: Range(least, most, open)})


def check_ranges(settings: Any) -> None:
    """Refuses a setting whose number is out of its range, by its flag."""
    for name, allowed in _ranges(type(settings)).items():
        value = getattr(settings, name)
        for one in value if isinstance(value, tuple | list) else (value,):
            if isinstance(one, int | float) and not allowed.holds(one):
                flag = f"--{name.replace('_', '-')} (`{name}`)"
                raise ValueError(f"{flag} must be {allowed}; got {one}.")


def check_direction(flag: str, direction: tuple[float, ...] | None) -> None:
    """Refuses a direction that is not finite, or zero; `None` is none."""
    if direction is not None and not (any(direction) and all(map(math.isfinite, direction))):
        raise ValueError(f"{flag} must be a finite direction, and not zero; got {direction}.")


def _ranges(kind: type) -> dict[str, Range]:
    """Returns the ranges of the fields of a class; those of its bases count where it has none."""
    found: dict[str, Range] = {}
    for base in kind.__mro__:
        for field in dataclasses.fields(base) if dataclasses.is_dataclass(base) else ():
            if _RANGE in field.metadata:
                found.setdefault(field.name, field.metadata[_RANGE])
    return found
