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
from reference import relative  # noqa: E402
from scenes import file_name, FILES, SCENES, weights, write_scenes  # noqa: E402


# The root mean square by which pictures of one scene by two renderers may differ.
_SAME = 0.02
# Cones of a pixel.
_CONES = 16


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
        derivative, shift, step = reference.derivative(spec)
        np.savez_compressed(file, derivative=derivative, shift=shift, step=step)
    with np.load(file) as arrays:
        expected, shift = arrays["derivative"], arrays["shift"]
    if not np.any(expected):
        raise ValueError(f"the leaf of {name!r} changes nothing that is seen; choose another.")
    figures = compare_ours(expected, shift, *(ours.derivative(spec, n) for n in (_CONES, 1)))
    if importlib.util.find_spec("mitsuba") and "extent" not in spec["camera"] and not spec["sky"]:
        pictures, shown = theirs.derivatives(spec)
        figures |= compare_theirs(expected, pictures, shown, reference.picture(spec))
    return figures


def compare_ours(
    expected: np.ndarray, shift: np.ndarray, fine: np.ndarray, single: np.ndarray
) -> dict[str, float]:
    """Compares derivatives with many cones a pixel and with one."""
    pixels = lambda found: float(np.abs(found - expected).sum() / np.abs(expected).sum())
    return {
        "error": relative(fine, expected),
        "pixel_error": pixels(fine),
        "one_cone": relative(single, expected),
        "one_cone_pixel_error": pixels(single),
        # By how much the last refinement has changed the reference.
        "reference": relative(expected + shift, expected),
    }


def compare_theirs(
    expected: np.ndarray, pictures: np.ndarray, shown: np.ndarray, same: np.ndarray
) -> dict[str, Any]:
    """Compares Mitsuba's derivatives, which are noisy; `None` where it has none."""
    difference = float(np.sqrt(np.mean((shown - same) ** 2)))
    if difference > _SAME:
        raise ValueError(f"Mitsuba shows another scene: a difference of {difference:.3f}.")
    # Some pixels are NaN; the other pictures say what they are.
    strange, weight = np.isnan(pictures), weights(*expected.shape[:2])
    pictures = np.where(strange, np.nanmean(pictures, axis=0), pictures)
    if not np.any(pictures):
        return {"mitsuba": None, "mitsuba_noise": None}
    noise = np.std([np.sum(weight * x) for x in pictures]) / np.sum(np.abs(weight * expected))
    return {
        "mitsuba": relative(pictures.mean(0), expected),
        "mitsuba_noise": float(noise / np.sqrt(len(pictures) - 1)),
        "mitsuba_nan": int(np.sum(np.any(strange, axis=-1))),
    }


def table(rows: dict[str, Any]) -> str:
    """Writes figures as a table, the largest errors first."""
    titles = "scene and leaf", "error", "pixel by pixel", "one cone a pixel", "Mitsuba 3"
    lines = ["| " + " | ".join(titles) + " |", "|---" * len(titles) + "|"]
    for name, row in sorted(rows.items(), key=lambda item: -item[1]["error"]):
        theirs = _percent(row["mitsuba"]) if row.get("mitsuba") is not None else "none"
        numbers = _percent(row["error"]), f"{row['pixel_error']:.1%}", _percent(row["one_cone"])
        lines.append(f"| {name} | " + " | ".join([*numbers, theirs]) + " |")
    return "\n".join(lines).replace("%", " %")


def _percent(error: float) -> str:
    return f"{error:.2%}"


if __name__ == "__main__":
    tyro.cli(main)
