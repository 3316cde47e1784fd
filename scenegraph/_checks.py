"""Run-time checks of shapes and types, applied to the whole library once it is imported.

A call that does not fit raises one line: the function, the argument, what was given and what is
wanted.
"""

import ast
import collections
import contextlib
import dataclasses
import difflib
import functools
import inspect
import re
import sys
import textwrap
import traceback
import types
import typing
from collections.abc import Callable, Iterator
from typing import Any

import jax
import numpy as np
from jaxtyping import AbstractArray, jaxtyped, PyTree, TypeCheckError

from ._typing import fits
from ._words import describe, is_array, LISTS, wanted


_METHODS = (classmethod, staticmethod, property)
# Modules whose functions are called for every scalar of a program, or every entry of a file, by the
# library alone; and those of the command line, which nothing but itself calls.
_INNER = re.compile(
    r"\.rowwise\._(graph|simplify|constants|scalarise|rules|movement|emit_\w+)$"
    r"|\.rows\._\w+$"
    r"|\.models\._fields$|\.assets\._(build|materials)$|\.shapes\._mesh_checks$"
    r"|^\w+\.cli\b"
)


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
    if not ours or _INNER.search(function.__module__):
        return False
    return bool(function.__annotations__) or function.__name__ == "__init__"


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
            _replace_texts(plain)
            beartype = _beartype()
            shapes = _has_shapes(plain)
            checked = jaxtyped(plain, typechecker=beartype) if shapes else beartype(plain)
        try:
            return checked(*args, **kwargs)
        except TypeError as error:
            begun = _has_begun(plain, error)
            message = None if begun else _explain(plain, args, kwargs, str(error))
            if message is None:
                raise
        raise TypeCheckError(message) from None

    return wrapper


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


def _replace_texts(function: Any) -> None:
    """Replaces annotations that are text by what they name."""
    annotations = function.__annotations__
    for name, hint in annotations.items():
        if isinstance(hint, str):
            with contextlib.suppress(NameError):  # of a class inside a function
                annotations[name] = eval(hint, _names_of(function.__module__))


@functools.cache
def _names_of(module: str) -> dict[str, Any]:
    """Returns a module's names, with those that it imports for type checkers alone."""
    names = dict(vars(sys.modules[module]))
    try:
        source = inspect.getsource(sys.modules[module])
    except OSError:  # There are only compiled files.
        return collections.defaultdict(lambda: Any, names)
    for node in ast.parse(source).body:
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            exec(compile(ast.Module(node.body, []), module, "exec"), names)
    return names


def _beartype() -> Callable:
    from beartype import beartype, BeartypeConf

    # An int is welcome where a float is annotated.
    return beartype(conf=BeartypeConf(is_pep484_tower=True, violation_type=TypeCheckError))


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
        known = name in given and name in hints
        if not known or typing.get_origin(hints[name]) is typing.Unpack:
            continue
        if parameter.kind is parameter.VAR_POSITIONAL:
            yield from ((f"{name}[{i}]", (x, hints[name])) for i, x in enumerate(given[name]))
        elif parameter.kind is parameter.VAR_KEYWORD:
            yield from ((key, (x, hints[name])) for key, x in given[name].items())
        else:
            yield name, (given[name], hints[name])


def _fits_all(value: Any, hint: Any) -> bool:
    """Returns true if a value fits; of a list, beartype checks one item alone."""
    if not fits(value, hint):
        return False
    long = type(value) in (list, tuple) and len(value) > 1
    # A tuple of so many items need not do with one of them.
    items = [type(value)([x]) for x in value] if long else []
    return all(fits(x, hint) for x in items) or not any(fits(x, hint) for x in items)


def _explain_argument(name: str, wrong: str, arguments: dict[str, tuple[Any, Any]]) -> str:
    value, hint = arguments[wrong]
    others = {key: x for key, (x, _) in arguments.items() if key != wrong and is_array(x)}
    beside = ", ".join(f"`{key}` {describe(x)}" for key, x in others.items())
    shapes = f" beside {beside}" if beside and is_array(value) else ""
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
        if free is not Any and not fits(there, free) and fits(there, hint) and fits(value, free):
            return f" `{wrong}` and `{other}` are swapped."
    if isinstance(value, np.ndarray) and fits(jax.numpy.asarray(value), hint):
        return " `jax.numpy.asarray` makes one of it."
    lists = [x for x in (hint, *typing.get_args(hint)) if typing.get_origin(x) in LISTS]
    items = [typing.get_args(x)[0] for x in lists]
    single = any(item not in (Any, str) and fits(value, item) for item in items)
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
