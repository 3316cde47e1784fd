import importlib
import types


class MissingExtra(ImportError):
    """A package that is not installed; the message says which extra of the library brings it."""


def import_extra(name: str, extra: str, what: str) -> types.ModuleType:
    """Imports a package that the library can do without.

    **Arguments:**

    - `name`: of the package's module.
    - `extra`: of the library, which installs it.
    - `what`: needs it, for the message.

    **Returns:**

    The module.

    **Errors:**

    `MissingExtra` if it, or what it needs in turn, is not installed or does not load.
    """
    try:
        return importlib.import_module(name)
    except (ImportError, RuntimeError, OSError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        message = f"{what} needs `pip install scenegraph[{extra}]` ({reason})"
        raise MissingExtra(message) from error
