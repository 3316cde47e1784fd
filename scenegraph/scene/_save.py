import contextlib
import dataclasses
import importlib
import importlib.metadata
import os
import pathlib
import re
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .._typing import PyTree
from ..io import FileError, read_archive, write_archive


SCENE_FILE = "scene.sg"
_FORMAT = 1
_FUNCTIONS = {
    "softplus": jax.nn.softplus,
    "relu": jax.nn.relu,
    "sigmoid": jax.nn.sigmoid,
    "exp": jnp.exp,
    "silu": jax.nn.silu,
    "gelu": jax.nn.gelu,
    "elu": jax.nn.elu,
    "tanh": jnp.tanh,
}
_ROOM = re.compile(r"scenegraph\.[a-z]+:[A-Za-z]\w*")


def save(tree: PyTree, path: str | os.PathLike) -> None:
    """Saves a scene, or any Module, in one file that is safe to open.

    **Arguments:**

    - `tree`: Modules, dicts, lists and tuples of arrays, numbers, strings and the activation
      functions of `jax.nn`.
    - `path`: of the file; it is written beside and renamed.

    **Errors:**

    `TypeError` for a value that the format does not know.
    """
    arrays: list[np.ndarray] = []
    header = {
        "format": _FORMAT,
        "scenegraph": importlib.metadata.version("scenegraph"),
        "jax": jax.__version__,
        "tree": _encode(tree, arrays),
    }
    write_archive(path, header, arrays)


def load(path: str | os.PathLike, *, classes: tuple[type, ...] = ()) -> PyTree:
    """Loads what `save` saved, or the fitted scene of a run folder. No code of the file is run.

    **Arguments:**

    - `path`: of the file, or of a run folder.
    - `classes`: Modules of your own that the file may name. Keyword only argument.

    **Returns:**

    The scene.

    **Errors:**

    `FileError` for a damaged file, or one that names a class which is neither the library's nor
    in `classes`.
    """
    path = pathlib.Path(path)
    path = path / SCENE_FILE if path.is_dir() else path
    header, arrays = read_archive(path)
    if header.get("format") != _FORMAT or "tree" not in header:
        raise FileError(
            f"{path} has format {header.get('format')!r}; this version reads format {_FORMAT}."
        )
    own = {_class_name(cls): cls for cls in classes}
    try:
        return _decode(header["tree"], arrays, own)
    except FileError as error:
        raise FileError(f"{path}: {error}") from error
    except (LookupError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise FileError(f"{path} is damaged: {error!r}.") from error


def _class_name(cls: type) -> str:
    module = cls.__module__.split(".")
    public = ".".join(part for part in module if not part.startswith("_"))
    return f"{public}:{cls.__qualname__}"


def _encode(node: Any, arrays: list[np.ndarray]) -> Any:
    if node is None or isinstance(node, bool | int | float | str):
        return node
    if eqx.is_array(node) or isinstance(node, np.ndarray):
        arrays.append(np.asarray(node))
        return {"array": len(arrays) - 1, "dtype": arrays[-1].dtype.name}
    if isinstance(node, eqx.Module):
        names = [field.name for field in dataclasses.fields(node)]
        fields = {name: _encode(getattr(node, name), arrays) for name in names}
        return {"class": _class_name(type(node)), "fields": fields}
    if type(node) is dict and all(isinstance(name, str) for name in node):
        return {"dict": {name: _encode(child, arrays) for name, child in node.items()}}
    if type(node) in (list, tuple):
        return {type(node).__name__: [_encode(child, arrays) for child in node]}
    return {"function": _function_name(node)}


def _function_name(node: Any) -> str:
    for name, function in _FUNCTIONS.items():
        if node is function:
            return name
    raise TypeError(f"cannot save {node!r}: not an array, number, string, Module or container.")


def _decode(node: Any, arrays: list[np.ndarray], own: dict[str, type]) -> Any:
    if not isinstance(node, dict):
        return node
    if "array" in node:
        return _typed(arrays[node["array"]], node.get("dtype"))
    if "class" in node:
        fields = {name: _decode(child, arrays, own) for name, child in node["fields"].items()}
        return _rebuild(_find_class(node["class"], own), fields)
    if "dict" in node:
        return {name: _decode(child, arrays, own) for name, child in node["dict"].items()}
    if "function" in node:
        return _FUNCTIONS[node["function"]]
    kind = tuple if "tuple" in node else list
    return kind(_decode(child, arrays, own) for child in node[kind.__name__])


def _typed(array: np.ndarray, dtype: str | None) -> jax.Array:
    """An array as it was: numpy's format forgets types that numpy itself does not have."""
    return jnp.asarray(array.view(np.dtype(dtype)) if array.dtype.kind == "V" else array)


def _find_class(name: str, own: dict[str, type]) -> type:
    if name in own:
        return own[name]
    cls = None
    if _ROOM.fullmatch(name):
        room, attribute = name.split(":")
        with contextlib.suppress(ModuleNotFoundError):
            cls = getattr(importlib.import_module(room), attribute, None)
    if not (isinstance(cls, type) and issubclass(cls, eqx.Module)):
        raise FileError(
            f"it names the class {name!r}, which is not the library's; pass it in `classes=`."
        )
    return cls


def _rebuild(cls: type, fields: dict[str, Any]) -> Any:
    """A Module from its fields, without its constructor, but with its invariants checked."""
    expected = {field.name for field in dataclasses.fields(cls)}
    if set(fields) != expected:
        raise FileError(
            f"{cls.__name__} has fields {sorted(expected)}; the file has {sorted(fields)}."
        )
    module = object.__new__(cls)
    for name, value in fields.items():
        object.__setattr__(module, name, value)
    for base in cls.__mro__:
        if "__check_init__" in base.__dict__:
            base.__dict__["__check_init__"](module)
    return module
