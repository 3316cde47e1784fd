"""Checked access to the objects of an untrusted JSON file."""

from collections import Counter
from typing import Any, TypeGuard

import numpy as np

from ..io import FileError, LARGEST


class Fields:
    """An object of a JSON file, with the words that say where it stands."""

    def __init__(self, value: Any, where: str):
        if not isinstance(value, dict):
            raise FileError(f"{where} must be an object; it is {shown(value)}.")
        self.value, self.where = value, where

    def __contains__(self, name: str) -> bool:
        return name in self.value

    def at(self, name: str) -> str:
        """Returns the words for a field."""
        return f"{self.where}.{name}"

    def object(self, name: str) -> "Fields":
        """Returns an object; an empty one where there is none."""
        return Fields(self.value.get(name, {}), self.at(name))

    def extras(self) -> "Fields":
        """Returns what programs add for themselves; an empty object where it is anything else."""
        value = self.value.get("extras")
        return Fields(value if isinstance(value, dict) else {}, self.at("extras"))

    def array(self, name: str) -> list[Any]:
        """Returns an array; an empty one where there is none."""
        value = self.value.get(name, [])
        if not isinstance(value, list):
            raise FileError(f"{self.at(name)} must be an array; it is {shown(value)}.")
        return value

    def objects(self, name: str) -> list["Fields"]:
        """Returns an array of objects; an empty one where there is none."""
        place = self.at(name)
        return [Fields(x, f"{place}[{i}]") for i, x in enumerate(self.array(name))]

    def text(self, name: str, default: str = "") -> str:
        """Returns a text."""
        value = self.value.get(name, default)
        if not isinstance(value, str):
            raise FileError(f"{self.at(name)} must be a text; it is {shown(value)}.")
        return value

    def whole(self, name: str, default: int | None = None, *, least: int = 0) -> int:
        """Returns an integer, `least` or more."""
        value = self.value.get(name, default)
        if not is_whole(value) or value < least:
            raise FileError(
                f"{self.at(name)} must be a whole number, {least} or more; it is {shown(value)}."
            )
        return int(value)

    def index(self, name: str, count: int, of: str) -> int | None:
        """Returns the index of one of `count` things; `None` where there is none."""
        if name not in self.value:
            return None
        return check_index(self.value[name], count, self.at(name), of)

    def indices(self, name: str, count: int, of: str) -> tuple[int, ...]:
        """Returns indices of `count` things."""
        place, values = self.at(name), self.array(name)
        return tuple(check_index(x, count, f"{place}[{i}]", of) for i, x in enumerate(values))

    def color(self, name: str) -> np.ndarray | None:
        """Returns three numbers of which none is negative; `None` where there are none."""
        return np.maximum(self.numbers(name, [0.0] * 3), 0) if name in self else None

    def number(self, name: str, default: float) -> float:
        """Returns a finite number."""
        return float(self.numbers(name, [default], scalar=True)[0])

    def numbers(self, name: str, default: list[float], *, scalar: bool = False) -> np.ndarray:
        """Returns as many finite numbers as there are by default, float64."""
        value = self.value.get(name, default[0] if scalar else default)
        values = [value] if scalar else value
        fits = isinstance(values, list) and len(values) == len(default)
        # Not where one is NaN; JSON's integers may be too long for a floating number.
        if not fits or not all(_is_number(x) and abs(x) <= LARGEST for x in values):
            kind = "a number" if scalar else f"{len(default)} numbers"
            raise FileError(
                f"{self.at(name)} must be {kind}, finite and at most {LARGEST:g}; it is "
                f"{shown(value)}."
            )
        return np.asarray(values, np.float64)

    def flag(self, name: str) -> bool:
        """Returns true or false; false where there is none."""
        value = self.value.get(name, False)
        if not isinstance(value, bool):
            raise FileError(f"{self.at(name)} must be true or false; it is {shown(value)}.")
        return value


def check_index(value: Any, count: int, where: str, of: str) -> int:
    """Returns the index of one of `count` things."""
    if not is_index(value, count):
        raise FileError(f"{where} must be an index of {count} {of}; it is {shown(value)}.")
    return int(value)


def is_index(value: Any, count: int) -> TypeGuard[int | float]:
    """Returns true for the index of one of `count` things."""
    return is_whole(value) and 0 <= value < count


def count_extensions(of: Fields, known: tuple[str, ...], what: str, counts: Counter[str]) -> None:
    """Counts the extensions of an object that are not read."""
    for name in sorted(set(of.object("extensions").value) - set(known)):
        counts[f"{name[:60]} of a {what}"] += 1


def is_whole(value: Any) -> bool:
    """Returns true for an integer; JSON's writers give some of them a fraction of zero."""
    if isinstance(value, float):
        return value.is_integer()
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def shown(value: Any) -> str:
    """Shortens a value for a message."""
    if isinstance(value, list | dict) and len(value) > 20:
        return f"of length {len(value)}"
    text = repr(value) if not isinstance(value, int) or abs(value) < 1e30 else "an absurd integer"
    return text if len(text) <= 60 else f"{text[:57]}..."
