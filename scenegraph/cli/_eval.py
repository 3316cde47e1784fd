import dataclasses
import pathlib
from typing import Annotated, Any

import tyro

from ..fit import evaluate, load_views, open_run, Run, summary
from ..io import FileError, write_json
from ..scene import load, Scene
from ._console import say


@dataclasses.dataclass(frozen=True)
class Eval:
    """Score a fitted scene on held-out pictures; writes RUN/metrics.json and pictures."""

    run: Annotated[pathlib.Path, tyro.conf.Positional]
    """A run folder."""

    split: str | None = None
    """Which pictures: test (the default, if there is one), val, or train."""

    data: pathlib.Path | None = None
    """The data folder; by default the one that was fitted."""

    def main(self) -> None:
        """Evaluates and prints the means."""
        run = open_run(self.run)
        _, others = run.load_config()
        folder = self.data or remembered_data(run, others)
        metrics = evaluate_run(run, load(run.folder), folder, self.split)
        for name in ("psnr", "ssim", "psnr_8bit", "ssim_8bit"):
            say(f"{name:>10}  {metrics[name]:.4f}")
        say(f"wrote {run.metrics}")


def evaluate_run(
    run: Run,
    scene: Scene,
    folder: pathlib.Path,
    split: str | None,
    frames: list[int] | None = None,
) -> dict[str, Any]:
    """Scores a run on a split, and writes metrics and pictures beside the truth.

    **Arguments:**

    - `run`: where to write.
    - `scene`: its scene.
    - `folder`: the data folder.
    - `split`: which pictures; `None` for the best held-out split there is.
    - `frames`: numbers of the pictures to score; `None` for all.

    **Returns:**

    What `metrics.json` holds.
    """
    config, _ = run.load_config()
    split = split or held_out_split(folder)
    views = load_views(config, folder, split)
    scores = evaluate(
        scene,
        views,
        frames=frames,
        seen=lambda frame, image, truth: run.save_pair(f"{split}_{frame:03d}", image, truth),
    )
    protocol = {
        "split": split,
        "pictures": len(scores),
        "of": views.frames,
        "size": [int(views.widths[0]), int(views.heights[0])],
        "downscale": config.downscale,
        "background": config.background,
        "samples": "deterministic",
        "psnr": "mean over pictures, float, not clipped",
        "ssim": "11x11 Gaussian window, sigma 1.5, valid pixels",
        "8bit": "clipped and rounded to 8 bits",
    }
    metrics = summary(scores, protocol)
    write_json(run.metrics, metrics)
    return metrics


def remembered_data(run: Run, others: dict[str, Any]) -> pathlib.Path:
    """The data folder that a run was fitted to.

    **Arguments:**

    - `run`: for the message.
    - `others`: from its `config.json`.

    **Returns:**

    The folder.

    **Errors:**

    `FileError` if the run does not say.
    """
    if not isinstance(others.get("data"), str):
        raise FileError(f"{run.folder}/config.json does not name its data folder; pass one.")
    return run.folder / others["data"]  # data inside the run are named relative to it


def held_out_split(folder: pathlib.Path) -> str:
    """The split to evaluate on.

    **Arguments:**

    - `folder`: the data folder.

    **Returns:**

    `test` if it is there, else `val`, else `train`.
    """
    there = [s for s in ("test", "val") if (folder / f"transforms_{s}.json").exists()]
    return there[0] if there else "train"
