from collections.abc import Callable, Iterator

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from ..parallel import is_first
from ._console import say


def track_frames(total: int = 0) -> Callable[[list[int]], Iterator[int]]:
    """Returns an iterator over frames that shows progress; `total` counts existing frames too."""

    def track(numbers: list[int]) -> Iterator[int]:
        if len(numbers) < total:
            say(f"{total - len(numbers)} of {total} frames are there already")
        with frames_bar() as bar:
            yield from bar.track(numbers, description="rendering")

    return track


def frames_bar() -> Progress:
    """Returns a bar that counts frames on the error stream of the first of several processes."""
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("left"),
        console=Console(stderr=True),
        disable=not is_first(),
    )
