"""The paper's tables, from the metrics of runs."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from ._markup import Table
from ._result import Result
from ._scores import mean_of_means, METRICS


TITLES = {
    "psnr": "PSNR ↑",
    "ssim": "SSIM ↑",
    "flip": "FLIP ↓",
    "lpips": "LPIPS ↓",
    "average": "avg. ↓",
}
_MEAN = "mean"


@dataclasses.dataclass(frozen=True)
class _Row:
    scene: str
    method: str
    scale: str
    values: Mapping[str, float | None]


def paper_tables(
    results: Sequence[Result], *, eight_bit: bool = False, bold: bool = False
) -> list[Table]:
    """Tables of many runs as papers print them.

    **Arguments:**

    - `results`: from `read_result`.
    - `eight_bit`: numbers of pictures rounded to 8 bits. Keyword only argument.
    - `bold`: mark the best of what can be compared: of runs on one scene. Keyword only argument.

    **Returns:**

    One table for the runs whose pictures are all of one size, one for the others: for these every
    size has a row. Means over sizes, and over scenes, have rows of their own.
    """
    end = "_8bit" if eight_bit else ""
    methods = _methods(results)
    single, several = [], []
    for result, method in zip(results, methods, strict=True):
        if len(result.metrics["scales"]) > 1:
            several += _scale_rows(result, method, end)
        else:
            single.append(_Row(result.scene, method, "", _values(result.metrics, end)))
    caption = _caption(results, eight_bit)
    kinds = [(rows, caption) for rows in (single, several) if rows]
    return [_table(rows, caption, bold) for rows, caption in kinds]


def metric_table(metrics: Mapping[str, Any]) -> Table:
    """Means and standard deviations of one run, for every size of picture.

    **Arguments:**

    - `metrics`: what `metrics.json` holds.

    **Returns:**

    The table: numbers of floating pictures, then of pictures rounded to 8 bits.
    """
    there = [name for name in METRICS if metrics.get(name) is not None]
    groups = [(scale, "x".join(map(str, scale["size"]))) for scale in metrics["scales"]]
    if len(groups) > 1:
        whole = {"mean": metrics, "std": metrics["std"], "pictures": len(metrics["per_image"])}
        groups.append((whole, "all"))
    rows = [
        [size, str(group["pictures"]), numbers, *_spread(group, there, end)]
        for end, numbers in (("", "float"), ("_8bit", "8-bit"))
        for group, size in groups
    ]
    return Table(["size", "pictures", "numbers", *(TITLES[name] for name in there)], rows, texts=3)


def _spread(group: Mapping[str, Any], names: list[str], end: str) -> list[str]:
    def cell(name: str) -> str:
        deviation = group["std"].get(name)
        mean = metric_text(name, group["mean"].get(name))
        return mean if deviation is None else f"{mean} ± {metric_text(name, deviation)}"

    return [cell(name + end) for name in names]


def _scale_rows(result: Result, method: str, end: str) -> list[_Row]:
    rows = [
        _Row(result.scene, method, scale["scale"], _values(scale["mean"], end))
        for scale in result.metrics["scales"]
    ]
    return [*rows, _Row(result.scene, method, _MEAN, mean_of_means([row.values for row in rows]))]


def _values(means: Mapping[str, Any], end: str) -> dict[str, float | None]:
    return {name: means.get(name + end) for name in METRICS}


def _methods(results: Sequence[Result]) -> list[str]:
    """Presets, as long as they tell runs on one scene apart; else the names of the folders."""
    pairs = {(result.scene, result.preset) for result in results}
    return [r.preset if len(pairs) == len(results) else r.name for r in results]


def _over_scenes(rows: list[_Row]) -> list[_Row]:
    """Means over the scenes of each method, for every size that all of its scenes have."""
    means = []
    for method in dict.fromkeys(row.method for row in rows):
        own = [row for row in rows if row.method == method]
        scenes = {row.scene for row in own}
        for scale in dict.fromkeys(row.scale for row in own):
            alike = [row.values for row in own if row.scale == scale]
            if len(scenes) > 1 and len(alike) == len(scenes):
                means.append(_Row(_MEAN, method, scale, mean_of_means(alike)))
    return means


def _table(rows: list[_Row], caption: str, bold: bool) -> Table:
    single = len(rows)
    rows = [*rows, *_over_scenes(rows)]
    shown = [name for name in METRICS if any(row.values[name] is not None for row in rows)]
    words = ["scene"]
    words += ["method"] if len({row.method for row in rows}) > 1 else []
    words += ["scale"] if any(row.scale for row in rows) else []
    texts = [
        [getattr(row, word) for word in words] + [metric_text(n, row.values[n]) for n in shown]
        for row in rows
    ]
    several = {i for i in range(1, single) if rows[i].scale and rows[i].scene != rows[i - 1].scene}
    best = _best(rows, shown, texts, len(words)) if bold else frozenset()
    titles = [*words, *(TITLES[name] for name in shown)]
    return Table(titles, texts, len(words), best, frozenset(several | {single}), caption)


def _best(
    rows: list[_Row], shown: list[str], texts: list[list[str]], first: int
) -> frozenset[tuple[int, int]]:
    """Places of the best among the methods on one scene and size; equal texts are equally good."""
    places = set()
    for key in {(row.scene, row.scale) for row in rows}:
        rivals = [i for i, row in enumerate(rows) if (row.scene, row.scale) == key]
        for column, name in enumerate(shown):
            values = [(rows[i].values[name], texts[i][first + column]) for i in rivals]
            known = [(value, text) for value, text in values if value is not None]
            choose = max if name in ("psnr", "ssim") else min
            winner = choose(known)[1] if len(known) > 1 else None
            places |= {(i, first + column) for i in rivals if texts[i][first + column] == winner}
    return frozenset(places)


def metric_text(name: str, value: float | None) -> str:
    """A metric as tables show it.

    **Arguments:**

    - `name`: of the metric, which decides on the digits.
    - `value`: of it; `None` if it was not measured.

    **Returns:**

    A number, or a dash.
    """
    if value is None:
        return "–"
    return f"{value:.2f}" if name.startswith("psnr") else f"{value:.4f}"


def _caption(results: Sequence[Result], eight_bit: bool) -> str:
    splits = " and ".join(dict.fromkeys(r.metrics["protocol"]["split"] for r in results))
    numbers = "rounded to 8 bits" if eight_bit else "in floating point, not clipped"
    return f"Means over {splits} pictures, {numbers}."
