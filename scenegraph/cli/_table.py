import dataclasses
import pathlib
from typing import Annotated, Literal

import tyro

from ..io import replace_file
from ._console import say, show
from ._flags import OptionalPath, OptionalStr


@dataclasses.dataclass(frozen=True)
class Table:
    """Put the scores of evaluated runs into a table, as papers print them."""

    # The run folders. Those with pictures of several sizes get a row for every size.
    runs: Annotated[tuple[pathlib.Path, ...], tyro.conf.Positional]

    # The markup of the table.
    format: Literal["markdown", "latex"] = "markdown"

    # A file for the table, instead of the output.
    out: OptionalPath = None

    # The split: test, val or train; by default the one that was evaluated last.
    split: OptionalStr = None

    # Show the scores of pictures rounded to 8 bits, instead of those in floating point.
    eight_bit: bool = False

    # Mark the best of several runs on the same scene.
    bold: bool = False

    def check(self) -> None:
        """Refuses wrong settings before anything is loaded."""
        if not self.runs:
            raise ValueError("name at least one run folder, as in `scenegraph table runs/chair`.")

    def main(self) -> None:
        """Writes the tables, and warnings about numbers that cannot be compared."""
        from ..runs import cautions, latex, markdown, open_run, paper_tables, read_result

        results = [read_result(open_run(folder), self.split) for folder in self.runs]
        tables = paper_tables(results, eight_bit=self.eight_bit, bold=self.bold)
        text = "\n\n".join(map(latex if self.format == "latex" else markdown, tables))
        for sentence in cautions(results):
            say(sentence)
        if self.out is None:
            show(text)
            return
        replace_file(self.out, lambda file: file.write(f"{text}\n".encode()))
        say(f"wrote {self.out}")
