"""Tables as text, and the page about one run."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from ._residuals import describe_outliers
from ._scores import METRICS


TITLES = {
    "psnr": "PSNR ↑",
    "ssim": "SSIM ↑",
    "flip": "FLIP ↓",
    "lpips": "LPIPS ↓",
    "average": "avg. ↓",
}


@dataclasses.dataclass(frozen=True)
class Table:
    """The content of a table, whatever its markup."""

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    texts: int = 1  # so many columns on the left are words; the others are numbers
    bold: frozenset[tuple[int, int]] = frozenset()  # (row, column)
    rules: frozenset[int] = frozenset()  # rows with a line above, in LaTeX
    caption: str = ""


def markdown(table: Table) -> str:
    """Writes a table in Markdown, with columns padded so that it can be read as it is."""
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
    """Writes a table in LaTeX, for the package `booktabs`; the caption is a comment before it."""
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


def report(metrics: Mapping[str, Any]) -> str:
    """Writes what an evaluation found as a page of Markdown."""
    protocol = metrics["protocol"]
    title = f"# {protocol['pictures']} of {protocol['of']} {protocol['split']} pictures"
    training = metrics.get("training")
    missing = [f"- {reason}" for reason in metrics["missing"].values()]
    parts = [
        title,
        markdown(metric_table(metrics)),
        *(["Left out:", "\n".join(missing)] if missing else []),
        "## Every picture",
        markdown(_pictures(metrics)),
        *(["## Training pictures", describe_outliers(training)] if training else []),
        "## How it was measured",
        "\n".join(f"- {key}: {_plain(value)}" for key, value in protocol.items()),
    ]
    return "\n\n".join(parts) + "\n"


def _pictures(metrics: Mapping[str, Any]) -> Table:
    there = [n for n in METRICS if any(x[n] is not None for x in metrics["per_image"])]
    keys = [name + end for end in ("", "_8bit") for name in there]
    titles = [begin + TITLES[name] for begin in ("", "8-bit ") for name in there]
    rows = [
        [x["name"], "x".join(map(str, x["size"])), *(metric_text(key, x[key]) for key in keys)]
        for x in metrics["per_image"]
    ]
    return Table(["picture", "size", *titles], rows, texts=2)


def _plain(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key} {x}" for key, x in value.items())
    return "x".join(map(str, value)) if isinstance(value, list) else str(value)


def metric_table(metrics: Mapping[str, Any]) -> Table:
    """Tabulates means and deviations of one run, for every size; floating numbers, then 8-bit."""
    there = [name for name in METRICS if metrics.get(name) is not None]
    groups = [(scale, "x".join(map(str, scale["size"]))) for scale in metrics["scales"]]
    if len(groups) > 1:
        whole = {"mean": metrics, "std": metrics["std"], "pictures": len(metrics["per_image"])}
        groups.append((whole, "all"))
    kinds = [("", "float"), ("_8bit", "8-bit")]
    kinds += [("_corrected", "colour-corrected")] * ("psnr_corrected" in metrics)
    rows = [
        [size, str(group["pictures"]), numbers, *_cells(group, there, end)]
        for end, numbers in kinds
        for group, size in groups
    ]
    return Table(["size", "pictures", "numbers", *(TITLES[name] for name in there)], rows, texts=3)


def _cells(group: Mapping[str, Any], names: list[str], end: str) -> list[str]:
    def cell(name: str) -> str:
        deviation = group["std"].get(name)
        mean = metric_text(name, group["mean"].get(name))
        return mean if deviation is None else f"{mean} ± {metric_text(name, deviation)}"

    return [cell(name + end) for name in names]


def metric_text(name: str, value: float | None) -> str:
    """Writes a metric as tables show it, with a dash for `None`."""
    if value is None:
        return "–"
    return f"{value:.2f}" if name.startswith("psnr") else f"{value:.4f}"
