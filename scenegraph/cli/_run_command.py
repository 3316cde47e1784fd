"""The run of a command, and what is said of its errors."""

import gc
import os
import pathlib
import sys
from typing import Any

import jax
from jax.errors import JaxRuntimeError

from ..fitting import FitError, TooLarge
from ..io import FileError, MissingExtra
from ..parallel import ends_together
from ..runs import Stopped, TooFewSteps
from ._check import WrongGradients
from ._console import close_output, complain, explain


# Errors that the user can do something about.
_USER_ERRORS = FileError, FitError, MissingExtra, ValueError, OSError, MemoryError, JaxRuntimeError


@ends_together
def run_command(command: Any) -> int:
    """Runs a command, and returns the exit code, as `main` says."""
    _remember_compiled_programs()
    _collect_garbage_seldom()
    try:
        command.main()
        sys.stdout.flush()
    except BrokenPipeError:
        close_output()
        return 141
    except _USER_ERRORS as error:
        complain(f"scenegraph: {_explain(error)}")
        return 2
    except WrongGradients as error:
        complain(f"scenegraph: {error}")
        return 1
    except Stopped as stop:
        complain(f"scenegraph: {stop.message}")
        return 128 + stop.received
    except TooFewSteps as error:
        complain(f"scenegraph: {error}")
        return 3
    except KeyboardInterrupt:
        complain("scenegraph: interrupted")
        return 130
    return 0


def _remember_compiled_programs() -> None:
    """Keeps compiled programs in the user's cache, unless `JAX_COMPILATION_CACHE_DIR` is set."""
    if "JAX_COMPILATION_CACHE_DIR" in os.environ:
        return
    base = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    jax.config.update("jax_compilation_cache_dir", str(pathlib.Path(base) / "scenegraph" / "jax"))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.02)


def _explain(error: Exception) -> str:
    """Says what went wrong and what to do about it; raises an internal error of JAX again."""
    reason = (str(error) or type(error).__name__).splitlines()[0]
    if isinstance(error, TooLarge):
        return str(error)
    if isinstance(error, MemoryError) or "RESOURCE_EXHAUSTED" in reason:
        return (
            "out of memory. Lower --batch-size, --chunk, --width, --samples, or raise --downscale. "
            f"(The device says: {reason})"
        )
    if isinstance(error, JaxRuntimeError):
        raise error
    return explain(error)


# A search after so many new objects; one of all objects after a thousand times fifty of those.
_SELDOM = 50_000, 50, 1_000


def _collect_garbage_seldom() -> None:
    """Makes searches for garbage rare in this process, and leaves what there is out of them.

    Tracing makes many objects that stay, and searching them takes a quarter of its time.
    """
    gc.freeze()
    gc.set_threshold(*_SELDOM)
