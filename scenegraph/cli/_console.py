import os
import sys
from typing import Any


def printable(text: str) -> str:
    """Replaces control characters, such as terminals' escapes in names of files, by their codes."""
    return "".join(x if x.isprintable() or x in "\n\t" else repr(x)[1:-1] for x in text)


def say(text: str) -> None:
    """Writes a line to the error stream; of several processes, only the first does."""
    jax: Any = sys.modules.get("jax")
    if jax and jax.distributed.is_initialized() and jax.process_index() > 0:
        return
    complain(text)


def complain(text: str) -> None:
    """Writes a line to the error stream."""
    sys.stderr.write(printable(text) + "\n")
    sys.stderr.flush()


def explain(error: Exception) -> str:
    """Says what an error is about, and of one of the system what to do about it."""
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {error.strerror}. Choose another place, or make room there."
    return str(error)


def show(text: str) -> None:
    """Writes a line of results; what the terminal has no characters for is written as codes."""
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    shown = printable(text).encode(encoding, "backslashreplace").decode(encoding)
    sys.stdout.write(shown + "\n")
    sys.stdout.flush()


def open_missing_streams() -> None:
    """Makes streams that were closed before the start, as by `>&-`, swallow what is written."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w"))


def close_output() -> None:
    """Drops what is left to be written where nobody reads any more."""
    # Python would complain of it at its end.
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (OSError, ValueError):  # no file
        pass
