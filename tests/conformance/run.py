"""Gradients against finite differences of hard visibility: `nox -s conformance [-- NAMES]`.

References are computed where their files are missing, or all anew with `--references`; the figures
go to `docs/benchmarks/conformance.json`.
"""

import json
import pathlib
import sys
from typing import Any


HERE = pathlib.Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

import numpy as np  # noqa: E402
import ours  # noqa: E402
import reference  # noqa: E402
import tyro  # noqa: E402
from scenes import file_name, FILES, SCENES, weights, write_scenes  # noqa: E402


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
        rows[name] = _compare(name, references)
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
    found = ours.derivative(spec)
    weight = weights(*expected.shape[:2])
    return {
        "error": relative(found, expected, weight),
        "pixel_error": float(np.abs(found - expected).sum() / np.abs(expected).sum()),
        # By how much the step matters before it is extrapolated.
        "step": relative(expected + shift, expected, weight),
    }


def relative(found: np.ndarray, expected: np.ndarray, weight: np.ndarray) -> float:
    """The error of the weighted sum, in parts of what the sum would be without cancellation."""
    return float(abs(np.sum(weight * (found - expected))) / np.sum(np.abs(weight * expected)))


def table(rows: dict[str, Any]) -> str:
    """Writes figures as a table, the largest errors first."""
    lines = ["| scene and leaf | error | pixel by pixel |", "|---|---|---|"]
    for name, row in sorted(rows.items(), key=lambda item: -item[1]["error"]):
        lines.append(f"| {name} | {row['error']:.2%} | {row['pixel_error']:.1%} |")
    return "\n".join(lines).replace("%", " %")


if __name__ == "__main__":
    tyro.cli(main)
