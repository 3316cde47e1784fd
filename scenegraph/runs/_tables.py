"""Tables of many runs, as papers print them."""

import dataclasses
import pathlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..io import check_kinds, FileError, read_json
from ._report import metric_text, Table, TITLES
from ._run import Run
from ._scores import mean_of_means, METRICS


_MEAN = "mean"
# What tables read of `metrics.json`.
_NUMBERS = {f"{name}{end}?": float | None for name in METRICS for end in ("", "_8bit")}
_PROTOCOL = {
    "split": str,
    "data?": str | None,
    "downscale?": int,
    "background?": str,
    "pictures?": int,
    "of?": int,
}
_METRICS = {
    **_NUMBERS,
    "protocol": _PROTOCOL,
    "scales": [{"scale": str, "mean": _NUMBERS}],
    "missing?": {str: str},
}


@dataclasses.dataclass(frozen=True)
class Result:
    """The scores of one evaluated run."""

    name: str  # of the run's folder
    scene: str  # the name of the data's folder
    preset: str
    metrics: Mapping[str, Any]  # the content of `metrics.json`


def read_result(run: Run, split: str | None = None) -> Result:
    """Reads the scores of a run, on one split or on that which was evaluated last."""
    _, others = run.load_config()
    path = run.metrics if split is None else run.metrics_of(split)
    command = f"scenegraph eval {run.folder}" + ("" if split is None else f" --split {split}")
    if not path.exists():
        pictures = "" if split is None else f" on the {split} pictures"
        raise FileError(f"{run.folder} was not evaluated{pictures}; `{command}` does that.")
    metrics = read_json(path)
    if not isinstance(metrics, dict) or "scales" not in metrics or "protocol" not in metrics:
        raise FileError(f"{path} lacks the scores of every size; `{command}` writes it anew.")
    check_kinds(metrics, _METRICS, str(path))
    data = pathlib.Path(metrics["protocol"].get("data") or others.get("data") or "")
    here = run.folder.resolve()
    # A data set that was made on the spot is named after its run.
    scene = here.name if data.is_relative_to(here) else data.name
    return Result(here.name, scene, str(others.get("preset", "")), metrics)


def cautions(results: Sequence[Result]) -> list[str]:
    """Lists warnings before numbers are compared: settings, pictures or metrics that differ."""
    return [
        *_differences(results),
        *_of_training(results),
        *_left_out(results),
        *_missing(results),
    ]


def _differences(results: Sequence[Result]) -> Iterator[str]:
    for key in ("split", "downscale", "background"):
        values = [result.metrics["protocol"].get(key) for result in results]
        if len(set(values)) > 1:
            pairs = ", ".join(f"{r.name}: {v}" for r, v in zip(results, values, strict=True))
            yield f"the runs differ in {key} ({pairs}): their numbers cannot be compared"


def _of_training(results: Sequence[Result]) -> Iterator[str]:
    for result in results:
        if result.metrics["protocol"].get("split") == "train":
            yield f"{result.name}: the pictures are those of the training, none held out"


def _left_out(results: Sequence[Result]) -> Iterator[str]:
    for result in results:
        count, total = (result.metrics["protocol"].get(key) for key in ("pictures", "of"))
        if count != total:
            yield f"{result.name}: {count} of {total} pictures; `scenegraph eval` scores them all"


def _missing(results: Sequence[Result]) -> Iterator[str]:
    """Says which metrics are missing, in one sentence for each reason."""
    names: dict[tuple[str, str], list[str]] = {}
    for result in results:
        for metric, reason in result.metrics.get("missing", {}).items():
            if metric != "average":  # It is missing because another is.
                names.setdefault((metric, reason), []).append(result.name)
    for (metric, reason), runs in names.items():
        yield f"{', '.join(runs)}: no {metric.upper()} ({reason})"


@dataclasses.dataclass(frozen=True)
class _Row:
    scene: str
    method: str
    scale: str
    values: Mapping[str, float | None]


def paper_tables(
    results: Sequence[Result], *, eight_bit: bool = False, bold: bool = False
) -> list[Table]:
    """Tabulates runs with pictures of one size, and those of several, with a row for every size."""
    end = "_8bit" if eight_bit else ""
    # Presets name the methods if they distinguish runs on one scene; otherwise folders do.
    distinct = len({(result.scene, result.preset) for result in results}) == len(results)
    single, several = [], []
    for result in results:
        method = result.preset if distinct else result.name
        if len(result.metrics["scales"]) > 1:
            several += _scale_rows(result, method, end)
        else:
            single.append(_Row(result.scene, method, "", _values(result.metrics, end)))
    splits = " and ".join(dict.fromkeys(r.metrics["protocol"]["split"] for r in results))
    numbers = "rounded to 8 bits" if eight_bit else "in floating point, not clipped"
    caption = f"Means over {splits} pictures, {numbers}."
    return [_table(rows, caption, bold) for rows in (single, several) if rows]


def _scale_rows(result: Result, method: str, end: str) -> list[_Row]:
    rows = [
        _Row(result.scene, method, scale["scale"], _values(scale["mean"], end))
        for scale in result.metrics["scales"]
    ]
    return [*rows, _Row(result.scene, method, _MEAN, mean_of_means([row.values for row in rows]))]


def _values(means: Mapping[str, Any], end: str) -> dict[str, float | None]:
    return {name: means.get(name + end) for name in METRICS}


def _over_scenes(rows: list[_Row]) -> list[_Row]:
    """Averages over the scenes of each method, for every size that all of its scenes have."""
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
    """Finds the best among the methods on one scene and size; equal texts are equally good."""
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
