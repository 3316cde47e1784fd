"""The rules of the code base that only its classes tell: each Module is abstract or final."""

import importlib
import inspect
import pkgutil

import equinox as eqx


# Of the extras, those that some file imports at its top; no `__init__` imports that file.
OPTIONAL = ("torch",)


def find_modules(package: str) -> list[type]:
    """Every Equinox Module that a package defines, after importing all of it."""
    root = importlib.import_module(package)
    for info in pkgutil.walk_packages(root.__path__, f"{package}."):
        if not info.name.endswith("__main__"):
            _import(info.name)
    return [cls for cls in _subclasses(eqx.Module) if cls.__module__.split(".")[0] == package]


def _import(name: str) -> None:
    """Imports a file, but for one that needs an extra that is not installed."""
    try:
        importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name not in OPTIONAL:
            raise


def _subclasses(cls: type) -> list[type]:
    below = [sub for child in cls.__subclasses__() for sub in (child, *_subclasses(child))]
    return list(dict.fromkeys(below))


def neither_abstract_nor_final(classes: list[type]) -> list[str]:
    """Modules named `Abstract*` that can be made; others that cannot, or that have subclasses."""
    found = []
    for cls in classes:
        named, abstract = cls.__name__.startswith("Abstract"), _is_abstract(cls)
        heirs = [other.__name__ for other in classes if cls in other.__bases__]
        if named and not abstract:
            found.append(_class_finding(cls, "is not abstract; is_abstract=True makes it so"))
        if not named and abstract:
            found.append(_class_finding(cls, "is abstract, so its name begins with Abstract"))
        if not named and heirs:
            found.append(_class_finding(cls, f"is final, but {', '.join(heirs)} inherit from it"))
    return found


def _is_abstract(cls: type) -> bool:
    members = ("__abstractmethods__", "__abstractvars__", "__abstractclassvars__")
    if any(getattr(cls, name, None) for name in members):
        return True
    try:  # One without abstract members tells it only when called.
        cls()
    except Exception as error:
        return "abstract" in str(error)
    return False


def overridden_concrete(classes: list[type]) -> list[str]:
    """Methods and properties that replace one that already has a body."""
    return [
        _class_finding(cls, f"overrides the concrete `{base.__name__}.{name}`")
        for cls in classes
        for name, value in vars(cls).items()
        for base in cls.__mro__[1:]
        if base in classes and _is_method(name, value) and _is_concrete(vars(base).get(name))
    ]


def _is_method(name: str, value: object) -> bool:
    # Dataclasses make `__init__` anew (from Python 3.13 on `__replace__`, too), and the
    # `__check_init__` of all classes are called.
    if name in ("__init__", "__replace__", "__check_init__") or isinstance(value, type):
        return False
    return isinstance(value, classmethod | staticmethod | property) or callable(value)


def _is_concrete(value: object) -> bool:
    return value is not None and not getattr(value, "__isabstractmethod__", False)


def _class_finding(cls: type, text: str) -> str:
    source = inspect.getsourcefile(cls)
    line = inspect.getsourcelines(cls)[1]
    return f"{source}:{line}: {cls.__name__} {text}"
