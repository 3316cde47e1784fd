"""What an evaluation left in a run folder."""

import dataclasses
import pathlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..io import FileError, read_json
from ._run import Run


@dataclasses.dataclass(frozen=True)
class Result:
    """What is known of one evaluated run.

    **Arguments:**

    - `name`: of the run's folder.
    - `scene`: the name of the data's folder.
    - `preset`: that the fit began with.
    - `metrics`: what `metrics.json` holds.
    """

    name: str
    scene: str
    preset: str
    metrics: Mapping[str, Any]


def read_result(run: Run, split: str | None = None) -> Result:
    """Reads how good a run is.

    **Arguments:**

    - `run`: an evaluated run folder.
    - `split`: on which pictures; by default those that were evaluated last.

    **Returns:**

    The result.

    **Errors:**

    `FileError` for a folder that is no run, or was not evaluated on these pictures.
    """
    _, others = run.load_config()
    path = run.metrics if split is None else run.metrics_of(split)
    command = f"scenegraph eval {run.folder}" + ("" if split is None else f" --split {split}")
    if not path.exists():
        pictures = "" if split is None else f" on the {split} pictures"
        raise FileError(f"{run.folder} was not evaluated{pictures}; `{command}` does that.")
    metrics = read_json(path)
    if not isinstance(metrics, dict) or "scales" not in metrics or "protocol" not in metrics:
        raise FileError(f"{path} lacks the scores of every size; `{command}` writes it anew.")
    data = pathlib.Path(metrics["protocol"].get("data") or others.get("data") or "")
    here = run.folder.resolve()
    # A data set that was made on the spot is named after its run.
    scene = here.name if data.is_relative_to(here) else data.name
    return Result(here.name, scene, str(others.get("preset", "")), metrics)


def cautions(results: Sequence[Result]) -> list[str]:
    """What to know before numbers are compared.

    **Arguments:**

    - `results`: from `read_result`.

    **Returns:**

    Sentences: of settings that differ, of pictures that were left out, of metrics that are not
    there.
    """
    return [*_differences(results), *_left_out(results), *_missing(results)]


def _differences(results: Sequence[Result]) -> Iterator[str]:
    for key in ("split", "downscale", "background"):
        values = [result.metrics["protocol"].get(key) for result in results]
        if len(set(values)) > 1:
            pairs = ", ".join(f"{r.name}: {v}" for r, v in zip(results, values, strict=True))
            yield f"the runs differ in {key} ({pairs}): their numbers cannot be compared"


def _left_out(results: Sequence[Result]) -> Iterator[str]:
    for result in results:
        count, total = (result.metrics["protocol"].get(key) for key in ("pictures", "of"))
        if count != total:
            yield f"{result.name}: {count} of {total} pictures; `scenegraph eval` scores them all"


def _missing(results: Sequence[Result]) -> Iterator[str]:
    """One sentence for each reason."""
    names: dict[tuple[str, str], list[str]] = {}
    for result in results:
        for metric, reason in result.metrics.get("missing", {}).items():
            if metric != "average":  # It is missing where another is.
                names.setdefault((metric, reason), []).append(result.name)
    for (metric, reason), runs in names.items():
        yield f"{', '.join(runs)}: no {metric.upper()} ({reason})"
