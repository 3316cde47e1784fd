"""Words for values and annotations, for messages."""

import collections.abc
import os
import re
import reprlib
import types
import typing
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np
from jaxtyping import AbstractArray, Key, PyTree


# Generic types of which beartype checks one item.
LISTS = (list, tuple, set, frozenset, collections.abc.Sequence, collections.abc.Iterable)
_WORDS: dict[Any, str] = {
    Any: "anything",
    object: "anything",
    type(None): "None",
    bool: "true or false",
    int: "an integer",
    typing.SupportsIndex: "an integer",
    float: "a number",
    str: "a string",
    bytes: "bytes",
    os.PathLike: "a path",
    dict: "a dict",
    collections.abc.Mapping: "a mapping",
    collections.abc.Callable: "a function",
}


def wanted(hint: Any) -> str:
    """Returns words for what an annotation allows."""
    if hint in _WORDS:
        return _WORDS[hint]
    origin, options = typing.get_origin(hint), typing.get_args(hint)
    if origin is not None:
        return _wanted_generic(hint, origin, options)
    if isinstance(hint, type) and issubclass(hint, AbstractArray):
        return _wanted_array(hint)
    if isinstance(hint, type(PyTree)):
        return "a tree"
    return _class_word(hint) if isinstance(hint, type) else str(hint)


def _wanted_generic(hint: Any, origin: Any, options: tuple) -> str:
    if origin in (typing.Union, types.UnionType):
        return _either(_wanted_options(options))
    if origin is typing.Literal:
        return _either([repr(option) for option in options])
    if origin in LISTS:
        return _wanted_list(origin, options)
    if origin is collections.abc.Callable and isinstance(options[0], list):
        return f"a function of {len(options[0])} argument{'s' * (len(options[0]) != 1)}"
    return _WORDS.get(origin) or str(hint)


def _wanted_array(hint: Any) -> str:
    if hint.dtype is Key and not hint.dim_str:
        return "a random key, such as `jax.random.key(0)`"
    kind = hint.dtype.__name__.lower()
    kind = {"shaped": "", "num": "real", "key": "random key"}.get(kind, kind)
    return f"{_with_article(f'{kind} array'.strip())} of shape ({hint.dim_str})"


def _wanted_options(options: tuple) -> list[str]:
    """Words for the options of a union; those that make up `ArrayLike` are one."""
    if np.ndarray in options and jax.Array in options:
        rest = [x for x in options if getattr(x, "__module__", "").split(".")[0] not in _NUMERIC]
        rest = [x for x in rest if x not in (bool, int, float, complex)]
        return ["a number", "an array", *map(wanted, rest)]
    return list(dict.fromkeys(map(wanted, options)))


_NUMERIC = ("jax", "jaxlib", "numpy")


def _wanted_list(origin: Any, options: tuple) -> str:
    name = _with_article(origin.__name__.lower())
    items = [x for x in options if x is not ...]
    if origin is tuple and ... not in options:
        return f"{name} of {', '.join(map(wanted, items)) or 'nothing'}"
    if items[0] is Any:
        return name
    if isinstance(items[0], type) and not issubclass(items[0], AbstractArray | bool):
        noun = wanted(items[0]).split(" ", 1)[1]
        return f"{name} of {noun.removesuffix('s')}s"
    return f"{name}, each item {wanted(items[0])}"


def _either(words: Sequence[str]) -> str:
    return " or ".join(filter(None, [", ".join(words[:-1]), words[-1]]))


def _class_word(cls: type) -> str:
    name, package = cls.__name__.rpartition(".")[2], cls.__module__.split(".")[0]
    if name.startswith("Abstract"):
        name = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name.removeprefix("Abstract")).lower()
    elif package not in ("builtins", __package__):
        name = f"{package}.{name}"
    return _with_article(name)


def _with_article(noun: str) -> str:
    return f"an {noun}" if noun[0] in "aeiouAEIO" and not noun.startswith("uint") else f"a {noun}"


def describe(value: Any) -> str:
    """Returns a few words for a value in a message."""
    if is_array(value):
        numpy = " of NumPy" if isinstance(value, np.ndarray) else ""
        return f"{value.dtype}{list(value.shape)}{numpy}"
    if isinstance(value, type):
        return f"the class {value.__name__}"
    if type(value) in (list, tuple) and len(value) <= 4:
        row = ", ".join(map(describe, value))
        return f"[{row}]" if isinstance(value, list) else f"({row})"
    if value is None or isinstance(value, bool | int | float | complex | str | bytes | np.generic):
        return reprlib.repr(value)
    if isinstance(value, types.FunctionType | types.BuiltinFunctionType):
        return f"the function {value.__name__}"
    return _with_article(type(value).__name__)


def is_array(value: Any) -> bool:
    """Returns true for an array of JAX or NumPy, also one that is being traced."""
    return isinstance(value, jax.Array | np.ndarray)
