"""Several processes, on one host or many, that fit one scene together."""

import contextlib
import dataclasses
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

from ..runs import open_run, Run


# The exit code of a process that has lost another one: try again (EX_TEMPFAIL of sysexits.h).
_LOST = 75
# Codes of processes that were told to stop and did so together.
_ORDERLY = (0, 130, 143)
# A process that has not been heard of for so many seconds is lost.
_SILENCE = 30
_LOST_WORDS = re.compile("gloo|nccl|heartbeat|coordination|unavailable|connection (closed|reset)")


@dataclasses.dataclass(frozen=True)
class Cluster:
    """The processes that fit together: one for every GPU or host."""

    distributed: bool = False
    """Fit together with other processes, started alike; --out is a folder that all of them see.
    SLURM, Kubernetes and other clusters are found out; elsewhere, name the next three."""

    coordinator: str | None = None
    """HOST:PORT at which the first process can be reached by all."""

    num_processes: int | None = None
    """How many processes there are."""

    process_id: int | None = None
    """The number of this one, from 0."""

    @contextlib.contextmanager
    def joined(self) -> Iterator[None]:
        """While processes work together: if one is lost, this one ends, with a message.

        **Returns:**

        A context manager.

        **Errors:**

        `ValueError` for flags that do not fit together, or if no cluster is found.
        """
        given = self.coordinator, self.num_processes, self.process_id
        if not self.distributed:
            if any(x is not None for x in given):
                raise ValueError(
                    "--coordinator, --num-processes and --process-id need --distributed."
                )
            yield
            return
        _join(*given)
        try:
            yield
        except KeyboardInterrupt:
            _end(130, "scenegraph: interrupted")
        except Exception as error:
            if not _is_lost(error):
                raise
            _end(
                _LOST,
                "scenegraph: another process of this fit has ended, or cannot be reached "
                f"({str(error).splitlines()[0]}). Start all of them again with --resume to go on "
                "from the last checkpoint.",
            )

    def first_then_others(self, function: Callable[[], Any]) -> Any:
        """Calls a function in the first process, and in the others once it is done there.

        **Arguments:**

        - `function`: called without arguments.

        **Returns:**

        What it returned in this process.
        """
        result = function() if is_first() else None
        if self.distributed:
            multihost_utils.sync_global_devices("scenegraph")
        return result if is_first() else function()

    def from_first(self, value: Any) -> Any:
        """What the first process has.

        **Arguments:**

        - `value`: what JSON can hold.

        **Returns:**

        The same in all processes.
        """
        if not self.distributed:
            return value
        text = np.frombuffer(json.dumps(value).encode(), np.uint8)
        length = int(multihost_utils.broadcast_one_to_all(np.int32(text.size)))
        mine = text if is_first() else np.zeros(length, np.uint8)
        return json.loads(multihost_utils.broadcast_one_to_all(mine).tobytes())

    def largest(self, number: int) -> int:
        """The largest of the numbers that processes have. All must ask.

        **Arguments:**

        - `number`: of this process.

        **Returns:**

        The same in all processes.
        """
        if not self.distributed:
            return number
        return int(np.max(multihost_utils.process_allgather(np.int32(number))))

    @contextlib.contextmanager
    def own_run(self, shared: Run) -> Iterator[Run]:
        """Where this process may write: the first in the run folder, others in one that vanishes.

        **Arguments:**

        - `shared`: the run of all processes.

        **Returns:**

        A context manager; what a fit can be resumed from is found in either folder.
        """
        if is_first():
            yield shared
            return
        with tempfile.TemporaryDirectory(prefix="scenegraph-") as name:
            folder = pathlib.Path(name)
            for file in shared.folder.resolve().rglob("*.sg"):
                link = folder / file.relative_to(shared.folder.resolve())
                link.parent.mkdir(parents=True, exist_ok=True)
                link.symlink_to(file)
            yield open_run(folder)


def is_first() -> bool:
    """Whether this process is the one that writes and speaks.

    **Returns:**

    True for a process that is alone.
    """
    return not jax.distributed.is_initialized() or jax.process_index() == 0


def ends_together(main: Callable[..., int]) -> Callable[..., int]:
    """Lets no process that has failed wait for the others, which are waiting for it.

    **Arguments:**

    - `main`: returns an exit code.

    **Returns:**

    The same, but where processes work together, failures end this one at once.
    """

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


def _join(coordinator: str | None, processes: int | None, number: int | None) -> None:
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
        raise ValueError(
            f"--distributed found no cluster ({error}) Outside of SLURM, Kubernetes and the like, "
            "give --coordinator HOST:PORT, --num-processes and --process-id."
        ) from error


def _is_lost(error: Exception) -> bool:
    return bool(_LOST_WORDS.search(str(error).lower()))


def _end(code: int, message: str) -> None:
    """Ends this process without asking the others, who may be gone."""
    if message:
        sys.stderr.write(message.rstrip() + "\n")
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
