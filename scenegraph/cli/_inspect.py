import dataclasses
import pathlib
from typing import Annotated

import tyro

from ._console import show


@dataclasses.dataclass(frozen=True)
class Inspect:
    """Print the tree of a fitted scene: names, types, shapes, parameter counts."""

    # The run folder, or a saved scene.
    run: Annotated[pathlib.Path, tyro.conf.Positional]

    def main(self) -> None:
        """Prints the tree."""
        from ..scene import describe, load

        show(describe(load(self.run)))
