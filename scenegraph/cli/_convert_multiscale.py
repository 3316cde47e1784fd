import dataclasses
import pathlib
from typing import Annotated

import tyro
from rich.console import Console
from rich.progress import Progress

from ..data import convert_multiscale
from ._console import say


@dataclasses.dataclass(frozen=True)
class ConvertMultiscale:
    """Write Blender data at several sizes, as the multiscale data of the mip-NeRF paper is."""

    source: Annotated[pathlib.Path, tyro.conf.Positional, tyro.conf.arg(metavar="SOURCE")]
    """Folder with transforms_train.json, ... and pictures."""

    out: Annotated[pathlib.Path, tyro.conf.Positional, tyro.conf.arg(metavar="OUT")]
    """Where to write metadata.json and pictures; a folder that is new or empty."""

    levels: int = 4
    """How many sizes, each half of the one before; the full size is the first."""

    straight_alpha: bool = False
    """Average colours without weighting them by opacity, and cut instead of rounding: bit for bit
    what the published converter writes."""

    near: float = 2.0
    """Where rays begin, for metadata.json."""

    far: float = 6.0
    """Where rays end, for metadata.json."""

    def main(self) -> None:
        """Converts, showing how far it is."""
        with Progress(console=Console(stderr=True)) as progress:
            task = progress.add_task("converting", total=None)
            convert_multiscale(
                self.source,
                self.out,
                self.levels,
                straight_alpha=self.straight_alpha,
                near=self.near,
                far=self.far,
                progress=lambda done, total: progress.update(task, completed=done, total=total),
            )
        say(f"wrote {self.out}; fit it with `scenegraph fit {self.out}`")
