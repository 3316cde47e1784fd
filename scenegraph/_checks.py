"""Run-time checks of shapes and types, applied to the whole library once it is imported.

A call that does not fit raises one line: the function, the argument, what was given and what is
wanted.
"""

import collections.abc
import dataclasses
import difflib
import functools
import inspect
import os
import re
import reprlib
import sys
import textwrap
import traceback
import types
import typing
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
import numpy as np
from jaxtyping import AbstractArray, AnnotationError, jaxtyped, Key, PyTree, TypeCheckError


_METHODS = (classmethod, staticmethod, property)


def check_calls(package: str) -> None:
    """Checks every call of a package's annotated functions and methods, whoever calls them."""
    modules = [m for name, m in sys.modules.items() if f"{name}.".startswith(f"{package}.")]
    checked = functools.cache(_checked)
    for owner in (*modules, *_classes(modules, package)):
        for name, value in list(vars(owner).items()):
            if _is_public(name) and _is_annotated(value, package):
                setattr(owner, name, checked(value))
        if dataclasses.is_dataclass(owner):
            _name_conversions(owner)


def _classes(modules: list[types.ModuleType], package: str) -> Iterator[type]:
    found = (value for module in modules for value in vars(module).values())
    return iter({x for x in found if isinstance(x, type) and _belongs(x, package)})


def _is_public(name: str) -> bool:
    return not name.startswith("_") or name in ("__init__", "__call__")


def _belongs(value: Any, package: str) -> bool:
    return f"{getattr(value, '__module__', None)}.".startswith(f"{package}.")


def _is_annotated(value: Any, package: str) -> bool:
    function = _innermost(value)
    ours = isinstance(function, types.FunctionType) and _belongs(function, package)
    return ours and (bool(function.__annotations__) or function.__name__ == "__init__")


def _innermost(value: Any) -> Any:
    """The function inside a method, a property or a transformed function."""
    if isinstance(value, classmethod | staticmethod):
        return value.__func__
    if isinstance(value, property):
        return value.fget
    return getattr(value, "__wrapped__", value)


def _checked(value: Any) -> Any:
    checked = _lazily_checked(_innermost(value) if isinstance(value, _METHODS) else value)
    return type(value)(checked) if isinstance(value, _METHODS) else checked


def _lazily_checked(function: Callable) -> Callable:
    plain = checked = None

    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        nonlocal plain, checked
        if plain is None or checked is None:
            plain = _as_function(function)
            checked = _with_shapes(plain) if _has_shapes(plain) else _beartype()(plain)
        try:
            return checked(*args, **kwargs)
        except TypeError as error:
            begun = _has_begun(plain, error)
            message = None if begun else _explain(plain, args, kwargs, str(error))
            if message is None:
                raise
        raise TypeCheckError(message) from None

    return wrapper


def _with_shapes(function: Callable) -> Callable:
    return jaxtyped(function, typechecker=_beartype())


def _has_shapes(function: Callable) -> bool:
    """Returns true if annotations name axes; remembering these takes most of a check."""
    return any(map(_names_axes, function.__annotations__.values()))


def _names_axes(annotation: Any) -> bool:
    is_array = isinstance(annotation, type) and issubclass(annotation, AbstractArray)
    is_tree = isinstance(annotation, type(PyTree)) and annotation is not PyTree
    # What is written as text may be anything.
    unknown = isinstance(annotation, str)
    return is_array or is_tree or unknown or any(map(_names_axes, typing.get_args(annotation)))


def _as_function(value: Callable) -> Callable:
    """A plain function in place of a transformed one, which is an object."""
    if isinstance(value, types.FunctionType):
        return value
    return functools.wraps(_innermost(value))(lambda *args, **kwargs: value(*args, **kwargs))


def _beartype() -> Callable:
    from beartype import beartype

    return beartype(conf=_configuration(violation_type=TypeCheckError))


def _configuration(**options: Any) -> Any:
    from beartype import BeartypeConf

    # An int is welcome where a float is annotated, as Python's type rules have it.
    return BeartypeConf(is_pep484_tower=True, **options)


def _fits(value: Any, hint: Any) -> bool:
    from beartype.door import is_bearable

    try:
        return is_bearable(value, hint, conf=_configuration())
    except AnnotationError:  # of axes whose size no argument before has given
        return True


# --- What is wrong with a call


def _has_begun(function: Any, error: BaseException) -> bool:
    """Returns true if an error comes from the body of a function, and not from its call."""
    frames = (frame for frame, _ in traceback.walk_tb(error.__traceback__))
    return any(frame.f_code is function.__code__ for frame in frames)


def _explain(function: Any, args: tuple, kwargs: dict[str, Any], message: str) -> str | None:
    """Returns a line about what is wrong with a call; `None` if that is not known."""
    signature, name = inspect.signature(function), function.__qualname__.removesuffix(".__init__")
    try:
        given = signature.bind(*args, **kwargs)
    except TypeError as error:
        return _explain_names(name, signature, args, kwargs) or f"`{name}`: {error}."
    given.apply_defaults()
    arguments = dict(_each_argument(signature, given.arguments, _hints(function)))
    # Names of axes have the sizes that the arguments before gave them.
    with jaxtyped("context"):
        wrong = next((place for place, x in arguments.items() if not _fits_all(*x)), None)
    if wrong is not None:
        return _explain_argument(name, wrong, arguments)
    returned = re.search(
        r"the return value of .*?Actual value: (.*?)\nExpected", message, re.DOTALL
    )
    return None if returned is None else _explain_result(name, returned[1], _hints(function))


def _hints(function: Any) -> dict[str, Any]:
    try:
        return typing.get_type_hints(function)
    except NameError:
        return dict(function.__annotations__)


def _each_argument(
    signature: inspect.Signature, given: dict[str, Any], hints: dict[str, Any]
) -> Iterator[tuple[str, tuple[Any, Any]]]:
    """Yields names of arguments with their values and annotations."""
    for name, parameter in signature.parameters.items():
        # Keywords that a `TypedDict` lists are checked where they arrive.
        if name not in hints or typing.get_origin(hints[name]) is typing.Unpack:
            continue
        if parameter.kind is parameter.VAR_POSITIONAL:
            yield from ((f"{name}[{i}]", (x, hints[name])) for i, x in enumerate(given[name]))
        elif parameter.kind is parameter.VAR_KEYWORD:
            yield from ((key, (x, hints[name])) for key, x in given[name].items())
        else:
            yield name, (given[name], hints[name])


def _fits_all(value: Any, hint: Any) -> bool:
    """Returns true if a value fits; of a list, beartype looks at one item alone."""
    if not _fits(value, hint):
        return False
    long = type(value) in (list, tuple) and len(value) > 1
    # A tuple of so many items need not do with one of them.
    items = [type(value)([x]) for x in value] if long else []
    return all(_fits(x, hint) for x in items) or not any(_fits(x, hint) for x in items)


def _explain_argument(name: str, wrong: str, arguments: dict[str, tuple[Any, Any]]) -> str:
    value, hint = arguments[wrong]
    others = {key: x for key, (x, _) in arguments.items() if key != wrong and _is_array(x)}
    beside = ", ".join(f"`{key}` {describe(x)}" for key, x in others.items())
    shapes = f" beside {beside}" if beside and _is_array(value) else ""
    return (
        f"`{wrong}` of `{name}` must be {wanted(hint)}; got {describe(value)}{shapes}."
        f"{_advice(wrong, arguments)}"
    )


def _explain_result(name: str, result: str, hints: dict[str, Any]) -> str:
    """Returns a line about a wrong result, such as that of a part that a user has written."""
    result = textwrap.shorten(result, 80, placeholder=" ...")
    return f"`{name}` returned {result}; it must be {wanted(hints.get('return', Any))}."


def _advice(wrong: str, arguments: dict[str, tuple[Any, Any]]) -> str:
    """Returns what may help: arguments were swapped, or a list or another array is wanted."""
    value, hint = arguments[wrong]
    for other, (there, free) in arguments.items():
        if free is not Any and not _fits(there, free) and _fits(there, hint) and _fits(value, free):
            return f" `{wrong}` and `{other}` are swapped."
    if isinstance(value, np.ndarray) and _fits(jax.numpy.asarray(value), hint):
        return " `jax.numpy.asarray` makes one of it."
    lists = [x for x in (hint, *typing.get_args(hint)) if typing.get_origin(x) in _LISTS]
    items = [typing.get_args(x)[0] for x in lists]
    single = any(item not in (Any, str) and _fits(value, item) for item in items)
    return " Put a single one into a list." if single else ""


def _explain_names(
    name: str, signature: inspect.Signature, args: tuple, kwargs: dict[str, Any]
) -> str | None:
    """Returns a line about arguments that are too many, too few or not known."""
    known = [p for p in signature.parameters.values() if p.name != "self"]
    kinds = {p.kind: p.name for p in known}
    unnamed = [p.name for p in known if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    count = len(args) - ("self" in signature.parameters)
    named = [p.name for p in known if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    unknown = [key for key in kwargs if key not in named]
    if unknown and inspect.Parameter.VAR_KEYWORD not in kinds:
        near = difflib.get_close_matches(unknown[0], named, n=1)
        rest = f"did you mean `{near[0]}`?" if near else f"it has {_row(named)}."
        return f"`{name}` has no argument `{unknown[0]}`; {rest}"
    if count > len(unnamed) and inspect.Parameter.VAR_POSITIONAL not in kinds:
        if others := kinds.get(inspect.Parameter.VAR_KEYWORD):
            return f"`{name}` takes its {others} by name, as in `{name}(name=...)`."
        by_name = [x for x in named if x not in unnamed]
        rest = f"; {_row(by_name)} only by name" if by_name else ""
        return f"`{name}` takes {_row(unnamed)}{rest}; got {count} arguments without a name."
    passed = {*unnamed[:count], *kwargs}
    missing = [p.name for p in known if p.name in named and p.default is p.empty]
    missing = [x for x in missing if x not in passed]
    return f"`{name}` is missing its argument {_row(missing)}." if missing else None


def _row(names: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in names) or "no arguments"


# --- Values of fields that cannot be converted


def _name_conversions(cls: Any) -> None:
    """Names class and field where a value given for a field cannot be converted."""
    for name, annotation in cls.__dict__.get("__annotations__", {}).items():
        del annotation
        field = cls.__dataclass_fields__.get(name)
        if field is not None and (convert := field.metadata.get("converter")):
            named = _named(convert, f"{cls.__name__}.{name}")
            field.metadata = types.MappingProxyType({**field.metadata, "converter": named})


def _named(convert: Callable, place: str) -> Callable:
    @functools.wraps(convert)
    def converter(value):
        try:
            return convert(value)
        except (TypeError, ValueError) as error:
            # Others have messages of their own, as have those of a class inside this one.
            if type(error) not in (TypeError, ValueError) or str(error).startswith("`"):
                raise
            message = f"`{place}`: {error}"
            kind = type(error)
        raise kind(message) from None

    return converter


# --- Words for values and annotations


_LISTS = (list, tuple, set, frozenset, collections.abc.Sequence, collections.abc.Iterable)
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
    if origin in _LISTS:
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
    if _is_array(value):
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


def _is_array(value: Any) -> bool:
    return isinstance(value, jax.Array | np.ndarray)
