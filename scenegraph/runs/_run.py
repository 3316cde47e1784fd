"""A run folder: settings, scene, checkpoint, log, metrics and pictures."""

import dataclasses
import json
import os
import pathlib
from typing import Any

import numpy as np

from ..images import error_panels, Image, side_by_side
from ..io import (
    append_json,
    FileError,
    PART,
    read_json,
    replace_file,
    write_json,
    write_picture,
)
from ..scene import save, SCENE_FILE
from ._checkpoint import Snapshot
from ._checkpoints import Checkpoints
from ._config import config_of_record, config_record, FitConfig
from ._plot import read_log


@dataclasses.dataclass(frozen=True)
class Run:
    """The files of one fit.

    **Arguments:**

    - `folder`: where they are.
    """

    folder: pathlib.Path

    @property
    def log(self) -> pathlib.Path:
        """`metrics.jsonl`: a line of JSON every so many steps."""
        return self.folder / "metrics.jsonl"

    @property
    def metrics(self) -> pathlib.Path:
        """`metrics.json`: what `eval` found."""
        return self.folder / "metrics.json"

    @property
    def report(self) -> pathlib.Path:
        """`metrics.md`: the same to be read."""
        return self.folder / "metrics.md"

    @property
    def pictures(self) -> pathlib.Path:
        """`pictures/`: rendered, true, and where they differ."""
        return self.folder / "pictures"

    def metrics_of(self, split: str) -> pathlib.Path:
        """`metrics_SPLIT.json`: what `eval` last found on one split.

        **Arguments:**

        - `split`: its name.

        **Returns:**

        The path.
        """
        return self.folder / f"metrics_{split}.json"

    @property
    def tensorboard(self) -> pathlib.Path:
        """`tensorboard/`: event files, if they were asked for."""
        return self.folder / "tensorboard"

    def checkpoints(
        self,
        period: int = 0,
        *,
        keep: int = 1,
        about: dict[str, Any] | None = None,
        writes: bool = True,
    ) -> Checkpoints:
        """The files in `checkpoints/`: all that is needed to go on.

        **Arguments:**

        - `period`, `keep`, `about`, `writes`: as for `Checkpoints`.

        **Returns:**

        The checkpoints; with each, `scene.sg` is written too.
        """

        def save_scene(snapshot: Snapshot) -> None:
            save(snapshot.state.model, self.folder / SCENE_FILE)

        folder = self.folder / "checkpoints"
        return Checkpoints(folder, period, keep=keep, about=about, also=save_scene, writes=writes)

    def check(self, *, resume: bool) -> None:
        """Makes sure that the folder can be written to; writes nothing.

        **Arguments:**

        - `resume`: whether an earlier fit is to be continued. Keyword only argument.

        **Errors:**

        `FileError` for a folder with something in it, unless `resume`; and for `resume` without
        a checkpoint.
        """
        if resume and not self.checkpoints().paths():
            raise FileError(
                f"there is no checkpoint in {self.folder} to resume from; without --resume, the "
                "fit begins."
            )
        if not resume and self._in_use():
            raise FileError(
                f"{self.folder} is not empty; pass --resume to go on with the fit there, or "
                "another --out."
            )

    def _in_use(self) -> bool:
        """Whether there is more in the folder than a fit leaves that never came to a checkpoint."""
        there = {path.name for path in self.folder.iterdir()} if self.folder.exists() else set()
        begun = {"config.json", "cameras.sg", self.log.name, "data", "checkpoints"}
        begun.add(self.tensorboard.name)
        parts = {path for path in there if PART in path}
        return bool(there - begun - parts or self.checkpoints().paths())

    def save_config(self, config: FitConfig, **others: Any) -> None:
        """Writes `config.json`, making the folder.

        **Arguments:**

        - `config`: the settings.
        - `others`: what else to remember, such as the data folder.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        write_json(self.folder / "config.json", {**others, "fit": config_record(config)})

    def load_config(self) -> tuple[FitConfig, dict[str, Any]]:
        """Reads `config.json`.

        **Returns:**

        The settings and what else was remembered.

        **Errors:**

        `FileError` if this is not a run folder.
        """
        path = self.folder / "config.json"
        if not path.exists():
            raise FileError(f"{self.folder} is not a run folder: it has no config.json.")
        others = read_json(path)
        try:
            return config_of_record(others.pop("fit")), others
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise FileError(f"{path} does not hold the settings of a fit ({error}).") from error

    def append(self, line: dict[str, Any]) -> None:
        """Adds a line to the log.

        **Arguments:**

        - `line`: what JSON can hold.
        """
        append_json(self.log, line)

    def cut_log(self, step: int) -> None:
        """Drops the lines that a resumed fit will write again.

        **Arguments:**

        - `step`: the fit goes on from here.
        """
        if self.log.exists():
            kept = [line for line in read_log(self.log) if line["step"] <= step]
            text = "".join(json.dumps(line) + "\n" for line in kept)
            replace_file(self.log, lambda file: file.write(text.encode()))

    def save_pair(self, name: str, image: Image, truth: Image) -> None:
        """Writes a picture beside its truth, with a line between.

        **Arguments:**

        - `name`: of the file in `pictures/`, without ending.
        - `image`: rendered, left.
        - `truth`: right.
        """
        self._write_picture(name, side_by_side([image, truth]))

    def save_errors(self, name: str, image: Image, truth: Image) -> None:
        """Writes a picture, its truth and where they differ.

        **Arguments:**

        - `name`: of the file in `pictures/`, without ending.
        - `image`: rendered.
        - `truth`: of the same size.
        """
        self._write_picture(name, error_panels(image, truth))

    def _write_picture(self, name: str, pixels: np.ndarray) -> None:
        self.pictures.mkdir(exist_ok=True)
        write_picture(self.pictures / f"{name}.png", pixels)

    def save_metrics(self, metrics: dict[str, Any], report: str) -> None:
        """Writes what an evaluation found: the latest, and the latest of its split.

        **Arguments:**

        - `metrics`: from `summary`.
        - `report`: the same to be read.
        """
        write_json(self.metrics_of(metrics["protocol"]["split"]), metrics)
        write_json(self.metrics, metrics)
        self.report.write_text(report, encoding="utf-8")


def open_run(folder: str | os.PathLike) -> Run:
    """A run folder.

    **Arguments:**

    - `folder`: its path; it need not exist yet.

    **Returns:**

    The run.
    """
    return Run(pathlib.Path(folder))
