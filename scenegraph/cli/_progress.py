"""Progress on the error stream: of long phases, and of the frames of films."""

import contextlib
import sys
import threading
import time
from collections.abc import Callable, Iterator

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from ._console import say


# Seconds between two signs of life of a phase, where there is no terminal to draw on.
_PULSE = 1.5


@contextlib.contextmanager
def show_phase(text: str) -> Iterator[None]:
    """Shows that something goes on, and at its end how long it took, in one line."""
    from ..parallel import is_first

    if not is_first():
        yield
        return
    begin = time.monotonic()
    console = Console(stderr=True)
    alive = console.status(text) if console.is_terminal else _dots(text)
    try:
        with alive:
            yield
    finally:
        seconds = f"{time.monotonic() - begin:.1f} s"
        say(f"{text}: {seconds}" if console.is_terminal else f" {seconds}")


@contextlib.contextmanager
def _dots(text: str) -> Iterator[None]:
    """Begins a line, and adds a dot every now and then."""
    done = threading.Event()

    def write(part: str) -> None:
        sys.stderr.write(part)
        sys.stderr.flush()

    def pulse() -> None:
        while not done.wait(_PULSE):
            write(".")

    write(f"{text}:")
    thread = threading.Thread(target=pulse, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def track_frames(
    total: int = 0, description: str = "rendering"
) -> Callable[[list[int]], Iterator[int]]:
    """Returns an iterator over frames that shows progress; `total` counts existing frames too."""

    def track(numbers: list[int]) -> Iterator[int]:
        if len(numbers) < total:
            say(f"{total - len(numbers)} of {total} frames are there already")
        with frames_bar() as bar:
            yield from bar.track(numbers, description=description)

    return track


def track_passes(numbers: range) -> Iterator[int]:
    """Shows how many passes of a picture are done."""
    with frames_bar() as bar:
        yield from bar.track(numbers, description="passes")


def frames_bar() -> Progress:
    """Returns a bar that counts frames on the error stream of the first of several processes."""
    from ..parallel import is_first

    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("left"),
        console=Console(stderr=True),
        disable=not is_first(),
    )
