import dataclasses
import pathlib
from typing import Annotated, Any

import tyro

from ..images import Image
from ..io import FileError
from ..runs import (
    evaluate,
    find_measures,
    held_out_split,
    markdown,
    Measures,
    metric_table,
    open_run,
    protocol_of,
    report,
    Run,
    summary,
)
from ..scene import load, Scene
from ._console import say
from ._pace import Pace


@dataclasses.dataclass(frozen=True)
class Eval:
    """Score a fitted scene on held-out pictures; writes RUN/metrics.json, metrics.md, pictures."""

    run: Annotated[pathlib.Path, tyro.conf.Positional]
    """A run folder."""

    split: str | None = None
    """Which pictures: test (the default, if there is one), val, or train."""

    data: pathlib.Path | None = None
    """The data folder; by default the one that was fitted."""

    lpips: bool = True
    """Measure LPIPS too, if its extra and its weights are there; a CPU takes seconds a picture."""

    lpips_weights: pathlib.Path | None = None
    """A file with torchvision's weights of VGG16, for LPIPS; by default the one that
    SCENEGRAPH_LPIPS_WEIGHTS names, or the one that PyTorch has. Nothing is ever downloaded."""

    def main(self) -> None:
        """Evaluates and prints means and standard deviations."""
        run = open_run(self.run)
        _, others = run.load_config()
        folder = self.data or remembered_data(run, others)
        measures = find_measures(lpips=self.lpips, lpips_weights=self.lpips_weights)
        for reason in measures.missing.values():
            say(f"left out: {reason}")
        metrics = evaluate_run(run, load(run.folder), folder, self.split, measures=measures)
        print(markdown(metric_table(metrics)))
        say(f"wrote {run.metrics}, {run.report} and {run.pictures}")


# What a fit ends with.
_GLANCE = Measures(
    missing={
        name: f"{title} is measured by `scenegraph eval` alone"
        for name, title in [("flip", "FLIP"), ("lpips", "LPIPS"), ("average", "the average error")]
    }
)


def evaluate_run(
    run: Run,
    scene: Scene,
    folder: pathlib.Path,
    split: str | None,
    frames: list[int] | None = None,
    measures: Measures | None = None,
) -> dict[str, Any]:
    """Scores a run on a split, and writes metrics, and pictures beside the truth.

    **Arguments:**

    - `run`: where to write.
    - `scene`: its scene.
    - `folder`: the data folder.
    - `split`: which pictures; `None` for the best held-out split there is.
    - `frames`: numbers of the pictures to score; `None` for all.
    - `measures`: what to compare by, beside PSNR and SSIM; `None` for a glance, with nothing
      beside them and without pictures of the error.

    **Returns:**

    What `metrics.json` holds.
    """
    config, _ = run.load_config()
    split = split or held_out_split(folder)
    views = config.data.load(folder, split)
    pace = Pace(views.frames if frames is None else len(frames))

    def seen(frame: int, image: Image, truth: Image) -> None:
        run.save_pair(f"{split}_{frame:03d}", image, truth)
        if measures is not None:
            run.save_errors(f"{split}_{frame:03d}_error", image, truth)
        pace.tick()

    used = measures or _GLANCE
    scores = evaluate(scene, views, frames=frames, seen=seen, measures=used)
    protocol = {"data": str(folder), **protocol_of(config, views, split, len(scores), used)}
    metrics = summary(scores, protocol, used.missing)
    run.save_metrics(metrics, report(metrics))
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
