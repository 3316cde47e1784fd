from collections.abc import Callable, Iterator

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from ..parallel import is_first
from ._console import say


def track_frames(total: int) -> Callable[[list[int]], Iterator[int]]:
    """Counts frames on the error stream, with the time that is left; only in the first process.

    **Arguments:**

    - `total`: the number of frames of the film, those included that exist already.

    **Returns:**

    An iterator over frame numbers, as `write_film` and `write_frames` take it.
    """

    def track(numbers: list[int]) -> Iterator[int]:
        if len(numbers) < total:
            say(f"{total - len(numbers)} of {total} frames are there already")
        with frames_bar() as bar:
            yield from bar.track(numbers, description="rendering")

    return track


def frames_bar() -> Progress:
    """A bar that counts frames, on the error stream; shown by the first of several processes.

    **Returns:**

    The bar, a context manager.
    """
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("left"),
        console=Console(stderr=True),
        disable=not is_first(),
    )
