from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from ._cluster import is_first


def frames_bar() -> Progress:
    """A bar that counts frames and tells how long the rest will take, on the error stream. Of
    several processes only the first shows it.

    **Returns:**

    The bar, a context.
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
