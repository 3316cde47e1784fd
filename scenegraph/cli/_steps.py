"""The progress of the steps of a fit: a bar on a terminal, lines elsewhere."""

import contextlib
import time
from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.progress import BarColumn, Progress as Bar, TaskID, TextColumn
from rich.table import Column

from ..fitting import AbstractCallback, Progress, progress_line
from ..parallel import is_first
from ..runs import show_lines
from ._console import say


# Seconds between two looks at the loss, for which the host waits.
_PAUSE = 0.5


@contextlib.contextmanager
def show_steps(
    every: int, rays: int, console: Console | None = None
) -> Iterator[Sequence[AbstractCallback]]:
    """Shows the steps of a fit, and at its end the last of them, in one line."""
    console = Console(stderr=True) if console is None else console
    if not console.is_terminal or not is_first():
        with show_lines(every, rays) as lines:
            yield lines
        return
    columns = BarColumn(20, table_column=Column(min_width=5)), TextColumn("{task.description}")
    bar = Bar(*columns, console=console, transient=True)
    shown = StepsBar(bar, rays)
    try:
        yield [shown]
    finally:
        bar.stop()
        if shown.last is not None:
            say(progress_line(shown.last, rays))


class StepsBar(AbstractCallback):
    """Moves a bar on a terminal, which begins with the first step."""

    every = 1

    def __init__(self, bar: Bar, rays: int):
        self.last: Progress | None = None
        self._bar, self._rays, self._looked = bar, rays, 0.0
        self._task: TaskID | None = None

    def __call__(self, progress: Progress) -> bool:
        self.last, now = progress, time.monotonic()
        if now - self._looked >= _PAUSE:
            self._looked = now
            self._show(progress)
        return False

    def _show(self, progress: Progress) -> None:
        """Writes what is known now beside the bar."""
        # Numbers that are padded for columns are too wide beside a bar.
        line = " ".join(progress_line(progress, self._rays).replace("step ", "").split())
        total = float(progress.state.horizon)
        if self._task is None:
            self._bar.start()
            self._task = self._bar.add_task(line)
        self._bar.update(self._task, completed=progress.step, total=total, description=line)
