"""The import of packages on their first use (PEP 562): flags are read without JAX and Equinox.

Whatever is used first, all packages are loaded with it: the run-time checks of shapes and types
are put into all of them at once.
"""

import importlib
import importlib.util
import sys
import warnings
from collections.abc import Callable, Mapping
from typing import Any


_ROOT = __name__.rpartition(".")[0]
# Packages that can be imported without the others.
LIGHT = "cli", "io", "settings"
# A light package's file of names that need the others.
_LATER = "_later"
_finished: set[str] = set()


def load_everything() -> None:
    """Imports all packages but the command line."""
    importlib.import_module(f"{_ROOT}._everything")


def finish_import(module: str) -> None:
    """Imports all other packages too, unless this one is imported by another of them."""
    _finished.add(module)
    if not any(map(_is_unfinished, list(sys.modules))):
        load_everything()


def _is_unfinished(module: str) -> bool:
    """Returns true for a package, or a file of names, that is being imported."""
    root, _, name = module.partition(".")
    if root != _ROOT or module in _finished or name in ("", *LIGHT):
        return False
    return name.endswith(f".{_LATER}") or (
        "." not in name and getattr(sys.modules[module], "__path__", None) is not None
    )


def names_on_first_use(
    package: str, file: str = _LATER
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Returns a package's `__getattr__` and `__dir__`, by which it has the names of its file."""

    def load() -> dict[str, Any]:
        found = vars(importlib.import_module(f"{package}.{file}"))
        names = vars(sys.modules[package])
        names.update({name: x for name, x in found.items() if not name.startswith("_")})
        return names

    def get(name: str) -> Any:
        # `from package import *` asks for `__all__`, and takes all names where there is none.
        if name == "__all__" or not name.startswith("_"):
            # First the file, for whose lock threads wait; it asks for subpackages itself.
            names = load()
            if name in names:
                return names[name]
            if importlib.util.find_spec(f"{package}.{name}"):
                return importlib.import_module(f"{package}.{name}")
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return get, lambda: sorted(load())


def moved_names(package: str, places: Mapping[str, str]) -> Callable[[str], Any]:
    """Returns a package's `__getattr__` for names that moved: they work for one release."""

    def get(name: str) -> Any:
        if name not in places:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        new = places[name]
        message = f"{package}.{name} is now {new}.{name}"
        warnings.warn(message, DeprecationWarning, stacklevel=2)
        return getattr(importlib.import_module(new), name)

    return get
