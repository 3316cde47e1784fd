import json
import os
import pathlib
from typing import Any

from ..io import FileError


def read_log(path: str | os.PathLike) -> list[dict[str, Any]]:
    """Reads `metrics.jsonl`. Half a line at its end, as a killed process leaves it, is no line.

    **Arguments:**

    - `path`: of the file.

    **Returns:**

    One dictionary a line.

    **Errors:**

    `FileError` for a missing file, or a line that is not JSON or has no `step`.
    """
    try:
        lines = pathlib.Path(path).read_text(encoding="utf-8").splitlines(keepends=True)
        log = [json.loads(line) for line in lines if line.endswith("\n")]
    except (OSError, ValueError, RecursionError) as error:
        raise FileError(f"cannot read the log {path}: {error}.") from error
    if not all(isinstance(line, dict) and isinstance(line.get("step"), int) for line in log):
        raise FileError(f"cannot read the log {path}: it has a line without a step.")
    return log


def plot_log(log: list[dict[str, Any]], path: str | os.PathLike) -> None:
    """Draws loss and PSNR against the step.

    **Arguments:**

    - `log`: from `read_log`.
    - `path`: of the PNG.
    """
    # Here and not above: a plain import of the library does not load it.
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 6), layout="tight")
    upper, lower = figure.subplots(2, 1, sharex=True)
    train = [line for line in log if "loss" in line]
    held_out = [line for line in log if "test_psnr" in line]
    upper.semilogy([line["step"] for line in train], [line["loss"] for line in train])
    upper.set(ylabel="loss", title="Fit")
    lower.plot([x["step"] for x in train], [x["psnr"] for x in train], label="training batch")
    if held_out:
        values = [line["test_psnr"] for line in held_out]
        lower.plot([x["step"] for x in held_out], values, "o-", label="held-out pictures")
    lower.set(xlabel="step", ylabel="PSNR (dB)")
    lower.legend()
    for axes in (upper, lower):
        axes.grid(alpha=0.3)
    figure.savefig(path, dpi=120)
