"""Gradients against finite differences of hard visibility: `nox -s conformance [-- NAMES]`.

References are computed where their files are missing, or all anew with `--references`. Mitsuba 3
stands beside where it is installed; without, its figures of before are kept. All figures go to
`docs/benchmarks/conformance.json`.
"""

import importlib.util
import json
import pathlib
import sys
from typing import Any


HERE = pathlib.Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

import numpy as np  # noqa: E402
import ours  # noqa: E402
import reference  # noqa: E402
import theirs  # noqa: E402
import tyro  # noqa: E402
from scenes import file_name, FILES, SCENES, weights, write_scenes  # noqa: E402


# The root mean square by which pictures of one scene by two renderers may differ.
_SAME = 0.02


def main(
    names: tyro.conf.Positional[tuple[str, ...]] = (),
    references: bool = False,
    out: pathlib.Path = pathlib.Path("docs/benchmarks/conformance.json"),
) -> None:
    """Compares the derivatives of the scenes whose names begin with one of `names`; or all."""
    write_scenes()
    chosen = [n for n in SCENES if not names or any(n.startswith(x) for x in names)]
    rows = json.loads(out.read_text())["rows"] if out.exists() else {}
    for name in chosen:
        rows[name] = {**rows.get(name, {}), **_compare(name, references)}
        print(f"{name}: {rows[name]}", flush=True)
        rows = {n: rows[n] for n in SCENES if n in rows}
        out.write_text(json.dumps({"rows": rows}, indent=2) + "\n")
    print(table(rows))


def _compare(name: str, anew: bool) -> dict[str, Any]:
    spec, file = SCENES[name], FILES / f"{file_name(name)}.npz"
    if anew or not file.exists():
        derivative, shift = reference.derivative(spec)
        np.savez_compressed(file, derivative=derivative, shift=shift)
    with np.load(file) as arrays:
        expected, shift = arrays["derivative"], arrays["shift"]
    if not np.any(expected):
        raise ValueError(f"the leaf of {name!r} changes nothing that is seen; choose another.")
    weight = weights(*expected.shape[:2])
    found, fine = (ours.derivative(spec, samples) for samples in (1, 16))
    figures = {
        "error": relative(found, expected, weight),
        "pixel_error": float(np.abs(found - expected).sum() / np.abs(expected).sum()),
        "error_16": relative(fine, expected, weight),
        # By how much the step matters before it is extrapolated.
        "step": relative(expected + shift, expected, weight),
    }
    if importlib.util.find_spec("mitsuba"):
        figures |= _compare_theirs(spec, expected, weight)
    return figures


def _compare_theirs(spec: Any, expected: np.ndarray, weight: np.ndarray) -> dict[str, Any]:
    """Compares Mitsuba's derivative, which is noisy; `None` where it has none."""
    pictures, shown = theirs.derivatives(spec)
    difference = float(np.sqrt(np.mean((shown - reference.picture(spec)) ** 2)))
    if difference > _SAME:
        raise ValueError(f"Mitsuba shows another scene: a difference of {difference:.3f}.")
    # Some pixels are NaN; the other pictures say what they are.
    strange = np.isnan(pictures)
    pictures = np.where(strange, np.nanmean(pictures, axis=0), pictures)
    if not np.any(pictures):
        return {"mitsuba": None, "mitsuba_noise": None}
    noise = np.std([np.sum(weight * x) for x in pictures]) / np.sum(np.abs(weight * expected))
    return {
        "mitsuba": relative(pictures.mean(0), expected, weight),
        "mitsuba_noise": float(noise / np.sqrt(len(pictures) - 1)),
        "mitsuba_nan": int(np.sum(np.any(strange, axis=-1))),
    }


def relative(found: np.ndarray, expected: np.ndarray, weight: np.ndarray) -> float:
    """The error of the weighted sum, in parts of what the sum would be without cancellation."""
    return float(abs(np.sum(weight * (found - expected))) / np.sum(np.abs(weight * expected)))


def table(rows: dict[str, Any]) -> str:
    """Writes figures as a table, the largest errors first."""
    titles = "scene and leaf", "error", "16 cones a pixel", "pixel by pixel", "Mitsuba 3"
    lines = ["| " + " | ".join(titles) + " |", "|---" * len(titles) + "|"]
    for name, row in sorted(rows.items(), key=lambda item: -item[1]["error"]):
        theirs = _percent(row["mitsuba"]) if row.get("mitsuba") is not None else "none"
        numbers = _percent(row["error"]), _percent(row["error_16"]), f"{row['pixel_error']:.1%}"
        lines.append(f"| {name} | " + " | ".join([*numbers, theirs]) + " |")
    return "\n".join(lines).replace("%", " %")


def _percent(error: float) -> str:
    return f"{error:.2%}"


if __name__ == "__main__":
    tyro.cli(main)
