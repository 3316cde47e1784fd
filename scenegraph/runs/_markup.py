"""Tables as text."""

import dataclasses
from collections.abc import Sequence


@dataclasses.dataclass(frozen=True)
class Table:
    """What stands in a table, before it is known how it will be written.

    **Arguments:**

    - `columns`: the headings.
    - `rows`: of texts, as many in each.
    - `texts`: how many columns on the left are words; the others are numbers.
    - `bold`: places `(row, column)` of what stands out.
    - `rules`: numbers of the rows that have a line above, in LaTeX.
    - `caption`: what the reader has to know.
    """

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    texts: int = 1
    bold: frozenset[tuple[int, int]] = frozenset()
    rules: frozenset[int] = frozenset()
    caption: str = ""


def markdown(table: Table) -> str:
    """A table in Markdown, its columns padded so that it can be read as it is.

    **Arguments:**

    - `table`: the table.

    **Returns:**

    Lines.
    """
    escaped = _marked(table, lambda text: text.replace("|", "\\|"), "**{}**")
    lines = [[column.replace("|", "\\|") for column in table.columns], *escaped]
    widths = [max(3, *map(len, column)) for column in zip(*lines, strict=True)]

    def padded(cells: Sequence[str]) -> str:
        left = [cell.ljust(width) for cell, width in zip(cells, widths, strict=True)]
        right = [cell.rjust(width) for cell, width in zip(cells, widths, strict=True)]
        return "| " + " | ".join(left[: table.texts] + right[table.texts :]) + " |"

    rule = ["-" * w if i < table.texts else "-" * (w - 1) + ":" for i, w in enumerate(widths)]
    body = [padded(lines[0]), padded(rule), *map(padded, lines[1:])]
    return "\n".join(body + (["", table.caption] if table.caption else []))


def latex(table: Table) -> str:
    """A table in LaTeX; it needs the package `booktabs`.

    **Arguments:**

    - `table`: the table.

    **Returns:**

    Lines, from `\\begin{tabular}` to `\\end{tabular}`; the caption is a comment before them.
    """
    lines = [f"% {line}" for line in table.caption.splitlines()]
    numbers = len(table.columns) - table.texts
    lines += [f"\\begin{{tabular}}{{{'l' * table.texts}{'r' * numbers}}}", "\\toprule"]
    lines += [_latex_row(map(_latex_text, table.columns)), "\\midrule"]
    for number, row in enumerate(_marked(table, _latex_text, "\\textbf{{{}}}")):
        lines += ["\\midrule"] if number in table.rules else []
        lines.append(_latex_row(row))
    return "\n".join([*lines, "\\bottomrule", "\\end{tabular}"])


def _marked(table: Table, escape, bold: str) -> list[list[str]]:
    return [
        [bold.format(escape(x)) if (i, j) in table.bold else escape(x) for j, x in enumerate(row)]
        for i, row in enumerate(table.rows)
    ]


def _latex_row(cells) -> str:
    return " & ".join(cells) + " \\\\"


_LATEX = {character: "\\" + character for character in "&%$#_{}"} | {
    "\\": "\\textbackslash{}",
    "~": "\\textasciitilde{}",
    "^": "\\textasciicircum{}",
    "↑": "$\\uparrow$",
    "↓": "$\\downarrow$",
    "±": "$\\pm$",
    "–": "--",
}


def _latex_text(text: str) -> str:
    return "".join(_LATEX.get(character, character) for character in text)
