"""The process that finds poses: started, listened to, and ended with this one."""

import contextlib
import importlib.util
import json
import pathlib
import subprocess
import sys
from typing import Any, IO

from ..io import FileError, import_extra, MissingExtra
from ._pictures import Progress


_ENGINE = pathlib.Path(__file__).with_name("_engine.py")


def require_engine() -> None:
    """Refuses to begin where the package that finds poses is not installed."""
    if importlib.util.find_spec("pycolmap") is None:
        import_extra("pycolmap", "photos", "finding the poses of photographs")


def run_engine(task: dict[str, Any], log: pathlib.Path, progress: Progress) -> dict[str, Any]:
    """Does a task in a process of its own, whose messages go to a file, and returns its result."""
    # Not in the folder of this file: its names are no modules of that program.
    command = [sys.executable, "-P", str(_ENGINE)]
    with log.open("ab") as messages:
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=messages
        )
    try:
        assert process.stdin is not None and process.stdout is not None
        with contextlib.suppress(BrokenPipeError):  # `_listen` says that it has ended
            process.stdin.write(json.dumps(task).encode() + b"\n")
            process.stdin.flush()
        return _listen(process.stdout, log, progress)
    finally:
        # COLMAP does not look at signals.
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()


def _listen(lines: IO[bytes], log: pathlib.Path, progress: Progress) -> dict[str, Any]:
    for line in lines:
        try:
            message = json.loads(line)
        except ValueError:  # what a library prints
            continue
        if not isinstance(message, dict):
            continue
        if "result" in message:
            return message["result"]
        if "missing" in message:
            raise MissingExtra(
                "finding the poses of photographs needs `pip install scenegraph[photos]` "
                f"({message['missing']})"
            )
        if "error" in message:
            raise FileError(_explain(message["error"], log))
        progress(message["stage"], message["done"], message["total"])
    raise FileError(
        f"the process that finds poses has ended early, by lack of memory perhaps; {log} has its "
        "last words. Call again, which goes on, with a smaller --size."
    )


def _explain(error: str, log: pathlib.Path) -> str:
    if "full" in error or "No space" in error:
        return f"{log.parent}: no space is left on the disk. Make room there, and call again."
    return f"poses could not be found: {error} ({log} has more)"
