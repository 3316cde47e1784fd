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
from ..numerics import any_values
from ._earlier_files import with_own_integrator
from ._scene import Scene


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
# Names of classes in files of earlier versions.
_RENAMED = {
    "scenegraph.fitting:LogLinear": "scenegraph.optimizers:LogLinear",
    "scenegraph.integrators:Joint": "scenegraph.integrators:Integrator",
    "scenegraph.rays:Cone": "scenegraph.rays:ConeBeam",
    "scenegraph.rays:Cylinder": "scenegraph.rays:CylinderBeam",
}
# Fields of classes in files of earlier versions that no longer mean anything.
_DROPPED = {"OccupancyMarch": {"rounds", "opaque"}, "Surfaces": {"occluders"}}
_PUBLIC_CLASS = re.compile(r"scenegraph(\.[a-z]+){1,2}:(?!Abstract)[A-Za-z]\w*")


def save(tree: PyTree, path: str | os.PathLike) -> None:
    """Saves a scene, or any Module, in one file that is safe to open.

    **Arguments:**

    - `tree`: Modules, dicts, lists and tuples of arrays, numbers, strings and the activation
      functions of `jax.nn`.
    - `path`: the path of the file, which is written beside and renamed.

    **Errors:**

    `TypeError` for a value that the format does not know.
    """
    arrays: list[np.ndarray] = []
    header = tree_header(tree, arrays)
    write_archive(path, header, arrays)


def tree_header(tree: PyTree, arrays: list[np.ndarray]) -> dict[str, Any]:
    """Returns the header of an archive with a tree, whose arrays it appends to `arrays`."""
    return {**versions(), "tree": _encode(tree, arrays)}


def versions() -> dict[str, Any]:
    """Returns the number of the file format, and the versions of the library and of JAX."""
    ours = importlib.metadata.version("scenegraph")
    return {"format": _FORMAT, "scenegraph": ours, "jax": jax.__version__}


def check_format(path: str | os.PathLike, header: dict[str, Any]) -> None:
    """Raises `FileError`, with both versions, for a file of a version that cannot be read."""
    if header.get("format") != _FORMAT:
        raise FileError(
            f"{path} has format {header.get('format')!r}, of scenegraph "
            f"{header.get('scenegraph', '(it does not say which)')}; this version reads format "
            f"{_FORMAT}, and is scenegraph {versions()['scenegraph']}. Read it with the version "
            "that wrote it."
        )


def written_by(header: dict[str, Any]) -> str:
    """Returns a sentence with the versions of file and library; nothing if they are equal."""
    theirs, ours = header.get("scenegraph"), versions()["scenegraph"]
    return "" if theirs == ours else f" (Scenegraph {theirs} wrote it; this is {ours}.)"


def load(path: str | os.PathLike, *, classes: tuple[type, ...] = ()) -> PyTree:
    """Loads what `save` saved, or the fitted scene of a run folder. No code of the file is run.

    **Arguments:**

    - `path`: the path of a file or of a run folder; or of a checkpoint, for the scene in it.
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
    check_format(path, header)
    if "tree" not in header:
        raise FileError(f"{path} holds no scene.")
    own = {_class_name(cls): cls for cls in classes}
    try:
        return with_own_integrator(_decode(header["tree"], arrays, own), header["tree"])
    except FileError as error:
        raise FileError(f"{path}: {error}{written_by(header)}") from error
    except (LookupError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise FileError(f"{path} is damaged: {error!r}.") from error


def load_whole(path: str | os.PathLike) -> Scene:
    """Loads a scene; refuses a file that holds anything else, such as a part of one."""
    found = load(path)
    if not isinstance(found, Scene):
        raise FileError(f"{path} holds no scene, but {type(found).__name__}.")
    return found


def _class_name(cls: type) -> str:
    module = cls.__module__.split(".")
    public = ".".join(part for part in module if not part.startswith("_"))
    return f"{public}:{cls.__qualname__}"


def _encode(node: Any, arrays: list[np.ndarray]) -> Any:
    if node is None or isinstance(node, bool | int | float | str):
        return node
    if eqx.is_array(node) or isinstance(node, np.ndarray):
        arrays.append(np.asarray(node))
        about = {"dtype": arrays[-1].dtype.name, "shape": list(arrays[-1].shape)}
        return {"array": len(arrays) - 1, **about}
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


def _decode(node: Any, arrays: list[Any], own: dict[str, type]) -> Any:
    if not isinstance(node, dict):
        return node
    if "array" in node:
        array = arrays[node["array"]]
        if isinstance(array, np.ndarray):
            # numpy's format forgets types that numpy itself does not have.
            known = array.view(np.dtype(node.get("dtype"))) if array.dtype.kind == "V" else array
            # A file may name one array again and again: it is made once.
            arrays[node["array"]] = array = jnp.asarray(known)
        return array
    if "class" in node:
        fields = {name: _decode(child, arrays, own) for name, child in node["fields"].items()}
        return _rebuild(_find_class(node["class"], own), fields)
    if "dict" in node:
        return {name: _decode(child, arrays, own) for name, child in node["dict"].items()}
    if "function" in node:
        return _FUNCTIONS[node["function"]]
    kind = tuple if "tuple" in node else list
    return kind(_decode(child, arrays, own) for child in node[kind.__name__])


def _find_class(name: str, own: dict[str, type]) -> type:
    name = _RENAMED.get(name, name)
    if name in own:
        return own[name]
    cls = None
    if _PUBLIC_CLASS.fullmatch(name):
        package, attribute = name.split(":")
        with contextlib.suppress(ModuleNotFoundError):
            cls = getattr(importlib.import_module(package), attribute, None)
    if not (isinstance(cls, type) and issubclass(cls, eqx.Module)):
        raise FileError(
            f"it names the class {name!r}, which is not the library's; pass it in `classes=`."
        )
    return cls


def _rebuild(cls: type, fields: dict[str, Any]) -> Any:
    """A Module from its fields, without its constructor, but with its invariants checked."""
    expected = {field.name for field in dataclasses.fields(cls)}
    dropped = _DROPPED.get(cls.__name__, set())
    values = _settings(cls) | {name: x for name, x in fields.items() if name not in dropped}
    if set(values) != expected:
        raise FileError(
            f"{cls.__name__} has fields {sorted(expected)}; the file has {sorted(fields)}."
        )
    module = object.__new__(cls)
    for name, value in values.items():
        object.__setattr__(module, name, value)
    with any_values():
        _check(module)
    return module


def _settings(cls: type) -> dict[str, Any]:
    """Returns the defaults of settings and options, which older files may lack."""
    return {
        field.name: field.default
        for field in dataclasses.fields(cls)
        if field.default is None
        or (field.metadata.get("static") and field.default is not dataclasses.MISSING)
    }


def _check(module: Any) -> None:
    """Raises what the module's invariants raise; for a stack of modules, those of its first."""
    try:
        for base in type(module).__mro__:
            if "__check_init__" in base.__dict__:
                base.__dict__["__check_init__"](module)
    except (TypeError, ValueError):
        leaves = filter(eqx.is_array, jax.tree.leaves(module))
        sizes = {leaf.shape[0] if leaf.ndim else 0 for leaf in leaves}
        if len(sizes) != 1 or sizes == {0}:
            raise
        _check(jax.tree.map(lambda leaf: leaf[0] if eqx.is_array(leaf) else leaf, module))
