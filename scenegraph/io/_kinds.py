"""The kinds of values that a JSON file of an untrusted folder has to hold."""

import types
from collections.abc import Iterator
from typing import Any, get_args, TypeAlias

from ._errors import FileError


# A type or a union of types; `[kind]` for a list; `{"name": kind}` for an object, whose other names
# are free and whose names that end with `?` may be missing; `{str: kind}` for one of any names.
Kind: TypeAlias = type | types.UnionType | list | dict
_WORDS = {str: "a text", int: "a whole number", float: "a number", bool: "true or false"}


def check_kinds(value: Any, kind: Kind, where: str, place: str = "") -> None:
    """Refuses a value of another kind by a `FileError` that names its place, such as `a.b[3]`."""
    if not _is_of(value, kind):
        at = f"`{place}`" if place else "its content"
        raise FileError(f"{where}: {at} must be {_describe(kind)}; got {repr(value)[:80]}.")
    if isinstance(kind, list):
        for number, one in enumerate(value):
            check_kinds(one, kind[0], where, f"{place}[{number}]")
    if isinstance(kind, dict):
        for name, own in _named(kind, value):
            at = f"{place}.{name}" if place else name
            if name not in value:
                raise FileError(f"{where}: `{at}` is missing.")
            check_kinds(value[name], own, where, at)


def _named(kind: dict, value: dict) -> Iterator[tuple[str, Kind]]:
    """Yields the names of an object that count, with their kinds."""
    if str in kind:
        yield from ((name, kind[str]) for name in value)
        return
    for name, own in kind.items():
        plain = name.removesuffix("?")
        if plain == name or plain in value:
            yield plain, own


def _is_of(value: Any, kind: Any) -> bool:
    """Returns true if a value is of a kind, whatever is in it."""
    if isinstance(kind, list | dict):
        return isinstance(value, type(kind))
    kinds = get_args(kind) or (kind,)
    # A boolean is no number, but a whole number is one.
    if isinstance(value, bool):
        return bool in kinds
    return isinstance(value, (*kinds, int) if float in kinds else kinds)


def _describe(kind: Any) -> str:
    if isinstance(kind, list | dict):
        return "a list" if isinstance(kind, list) else "an object"
    return " or ".join(_WORDS.get(one, "null") for one in get_args(kind) or (kind,))
