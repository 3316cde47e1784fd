import dataclasses
import pathlib
from typing import Annotated

import tyro

from ..scene import describe, load


@dataclasses.dataclass(frozen=True)
class Inspect:
    """Print the tree of a fitted scene: names, kinds, shapes, parameter counts."""

    run: Annotated[pathlib.Path, tyro.conf.Positional]
    """A run folder, or a saved scene."""

    def main(self) -> None:
        """Prints the tree."""
        print(describe(load(self.run)))
