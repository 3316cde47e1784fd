from collections.abc import Mapping
from typing import Any

from ._markup import markdown, Table
from ._scores import METRICS
from ._tables import metric_table, metric_text, TITLES


def report(metrics: Mapping[str, Any]) -> str:
    """What an evaluation found, as a page of Markdown.

    **Arguments:**

    - `metrics`: what `metrics.json` holds.

    **Returns:**

    The page: means and standard deviations, every picture, and how it all was measured.
    """
    protocol = metrics["protocol"]
    title = f"# {protocol['pictures']} of {protocol['of']} {protocol['split']} pictures"
    missing = [f"- {reason}" for reason in metrics["missing"].values()]
    parts = [
        title,
        markdown(metric_table(metrics)),
        *(["Left out:", "\n".join(missing)] if missing else []),
        "## Every picture",
        markdown(_pictures(metrics)),
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
