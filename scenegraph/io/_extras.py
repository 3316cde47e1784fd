import importlib
import types


class MissingExtra(ImportError):
    """A package that is not installed; the message says which extra of the library brings it."""


def import_extra(name: str, extra: str, what: str) -> types.ModuleType:
    """Imports an optional module; `what` needs it, and the library's `extra` installs it."""
    try:
        return importlib.import_module(name)
    except (ImportError, RuntimeError, OSError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        message = f"{what} needs `pip install scenegraph[{extra}]` ({reason})"
        raise MissingExtra(message) from error
