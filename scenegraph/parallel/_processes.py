"""All processes of a job, on one host or many: they start, agree, wait and end together."""

import contextlib
import functools
import json
import os
import pathlib
import re
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator
from typing import Any

import jax
import numpy as np
from jax.experimental import multihost_utils


# The exit code of a process that has lost another one: try again (EX_TEMPFAIL of sysexits.h).
_LOST = 75
# Exit codes with which processes end that were stopped by a signal and ended together.
_ORDERLY = (0, 129, 130, 143)
# A process that has been silent for so many seconds is lost.
_SILENCE = 30
_LOST_WORDS = re.compile("gloo|nccl|heartbeat|coordination|unavailable|connection (closed|reset)")


def join(coordinator: str | None, processes: int | None, number: int | None) -> None:
    """Joins the other processes; raises `ValueError` if JAX finds no cluster."""
    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    # It would keep SIGTERM to itself.
    jax.config.update("jax_enable_preemption_service", False)
    if not number:
        sys.stderr.write("waiting for the other processes, for five minutes at most\n")
    try:
        jax.distributed.initialize(
            coordinator,
            processes,
            number,
            heartbeat_timeout_seconds=_SILENCE,
            shutdown_timeout_seconds=2 * _SILENCE,
        )
    except (ValueError, TypeError, RuntimeError) as error:
        raise ValueError(str(error)) from error


@contextlib.contextmanager
def end_if_lost(advice: str) -> Iterator[None]:
    """Ends this process, with advice, when another process is lost."""
    try:
        yield
    except KeyboardInterrupt:
        _end(130, "scenegraph: interrupted")
    except Exception as error:
        if not _LOST_WORDS.search(str(error).lower()):
            raise
        _end(
            _LOST,
            "scenegraph: another process of this fit has ended, or cannot be reached "
            f"({str(error).splitlines()[0]}). {advice}",
        )


def ends_together(main: Callable[..., int]) -> Callable[..., int]:
    """Returns `main` such that a process that fails ends at once, and waits for no other one."""

    @functools.wraps(main)
    def ending(*arguments: Any) -> int:
        try:
            code = main(*arguments)
        except BaseException:
            if jax.distributed.is_initialized():
                _end(1, traceback.format_exc())
            raise
        if code not in _ORDERLY and jax.distributed.is_initialized():
            _end(code, "")
        return code

    return ending


def _end(code: int, message: str) -> None:
    """Ends this process without the others' agreement, because they may be gone."""
    if message:
        sys.stderr.write(message.rstrip() + "\n")
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def is_first() -> bool:
    """Returns true in the process that writes and speaks, or if there is only one."""
    return not jax.distributed.is_initialized() or jax.process_index() == 0


def first_then_others(function: Callable[[], Any]) -> Any:
    """Calls a function in the first process, and then in the others; returns each one's result."""
    result = function() if is_first() else None
    if jax.distributed.is_initialized():
        multihost_utils.sync_global_devices("scenegraph")
    return result if is_first() else function()


def from_first(value: Any) -> Any:
    """Returns the first process's value, which JSON can hold, in all processes."""
    if not jax.distributed.is_initialized():
        return value
    text = np.frombuffer(json.dumps(value).encode(), np.uint8)
    length = int(multihost_utils.broadcast_one_to_all(np.int32(text.size)))
    mine = text if is_first() else np.zeros(length, np.uint8)
    return json.loads(multihost_utils.broadcast_one_to_all(mine).tobytes())


def largest(number: int) -> int:
    """Returns the largest of all processes' numbers."""
    if not jax.distributed.is_initialized():
        return number
    return int(np.max(multihost_utils.process_allgather(np.int32(number))))


@contextlib.contextmanager
def own_folder(shared: pathlib.Path, pattern: str) -> Iterator[pathlib.Path]:
    """Yields the folder in the first process; elsewhere a temporary one with links to its files."""
    if is_first():
        yield shared
        return
    shared = shared.resolve()
    with tempfile.TemporaryDirectory(prefix="scenegraph-") as name:
        for file in shared.rglob(pattern):
            link = pathlib.Path(name) / file.relative_to(shared)
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(file)
        yield pathlib.Path(name)
