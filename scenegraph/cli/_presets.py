"""Commands that print what there is: presets, and what a fitted scene consists of."""

import dataclasses
import pathlib
import sys
from typing import Annotated, Any

import tyro
from rich.console import Console
from rich.table import Table

from ..settings import differences, NOTES
from ._console import show


@dataclasses.dataclass(frozen=True)
class Presets:
    """List the presets of `fit`, with the settings in which each differs from another."""

    def main(self) -> None:
        """Prints a table."""
        table = Table(show_lines=True)
        table.add_column("--preset", overflow="fold")
        table.add_column("settings", no_wrap=True)
        for name, (base, purpose) in NOTES.items():
            first = "the library's defaults" if base is None else f"as {base}, but"
            flags = [_flag(key, value) for key, value in differences(name, base).items()]
            table.add_row(f"[bold]{name}[/]\n{purpose}", "\n".join([first, *flags]))
        console = Console()
        with console.capture() as text:
            console.print(table)
        # Not by the console: at a broken pipe, it would end the process as by an error.
        sys.stdout.write(text.get())


@dataclasses.dataclass(frozen=True)
class Inspect:
    """Print the tree of a fitted scene: names, types, shapes, parameter counts."""

    # The run folder, or a saved scene.
    run: Annotated[pathlib.Path, tyro.conf.Positional]

    def main(self) -> None:
        """Prints the tree."""
        from ..scene import describe, load

        show(describe(load(self.run)))


def _flag(name: str, value: Any) -> str:
    """Writes a setting as one types it."""
    flag = name.replace("_", "-")
    if isinstance(value, bool):
        return f"--{flag}" if value else f"--no-{flag}"
    text = " ".join(map(str, value)) if isinstance(value, tuple) else str(value)
    return f"--{flag} {text}"
