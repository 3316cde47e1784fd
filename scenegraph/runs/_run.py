"""A run folder: settings, scene, checkpoints, log, metrics and pictures."""

import dataclasses
import json
import os
import pathlib
import re
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from ..data import find_folder
from ..io import (
    are_usable,
    as_matrix,
    check_kinds,
    drop_parts,
    FileError,
    LOCK_FILE,
    locked_folder,
    PART,
    read_bytes,
    read_json,
    replace_file,
    require_no_links,
    write_json,
    write_picture,
)
from ..scene import save, SCENE_FILE
from ..settings import config_of_record, config_record, FitConfig
from ._checkpoint import Snapshot
from ._checkpoints import Checkpoints


CAMERAS_FILE = "cameras.sg"
# What `config.json` holds beside the settings.
_SPLIT = {"pictures?": int, "names?": str, "cameras?": [float], "colors?": [float]}
_REMEMBERED = {"data?": str | None, "preset?": str | None, "fingerprint?": {str: _SPLIT}}


def silent(message: str) -> None:
    """Drops a message."""


@dataclasses.dataclass(frozen=True)
class Run:
    """The files of one fit.

    **Arguments:**

    - `folder`: the path of the run folder.
    """

    folder: pathlib.Path

    @property
    def log(self) -> pathlib.Path:
        """`metrics.jsonl`: the log, a line of JSON every so many steps."""
        return self.folder / "metrics.jsonl"

    @property
    def metrics(self) -> pathlib.Path:
        """`metrics.json`: the scores of the latest evaluation."""
        return self.folder / "metrics.json"

    @property
    def report(self) -> pathlib.Path:
        """`metrics.md`: the same scores as a page of text."""
        return self.folder / "metrics.md"

    @property
    def pictures(self) -> pathlib.Path:
        """`pictures/`: rendered pictures, true ones, and their differences."""
        return self.subfolder("pictures")

    @property
    def tensorboard(self) -> pathlib.Path:
        """`tensorboard/`: event files, if there are any."""
        return self.subfolder("tensorboard")

    def subfolder(self, *names: str) -> pathlib.Path:
        """Returns the path of a folder in the run folder; `FileError` if a link is on its way.

        Runs may come from others: nothing is written through their links.
        """
        for count in range(1, len(names)):
            if (way := self.folder.joinpath(*names[:count])).is_symlink():
                require_no_links(way)
        return require_no_links(self.folder.joinpath(*names))

    def metrics_of(self, split: str) -> pathlib.Path:
        """Returns the path of `metrics_SPLIT.json`: the scores of the latest evaluation."""
        return self.folder / f"metrics_{split}.json"

    def checkpoints(
        self,
        period: int = 0,
        *,
        keep: int = 1,
        about: dict[str, Any] | None = None,
        writes: bool = True,
    ) -> Checkpoints:
        """Returns the checkpoints in `checkpoints/`; with each, `scene.sg` is written too.

        The arguments are those of `Checkpoints`.
        """

        def save_scene(snapshot: Snapshot) -> None:
            save(snapshot.state.model, self.folder / SCENE_FILE)

        folder = self.subfolder("checkpoints")
        return Checkpoints(
            folder, period, keep=keep, about=about, also=save_scene, writes=writes, first=True
        )

    @property
    def begun(self) -> bool:
        """True once a fit has written its settings, whether or not it has saved a checkpoint."""
        return (self.folder / "config.json").exists()

    def locked(self) -> AbstractContextManager[None]:
        """Holds the folder for one fit, until the `with` statement, or the process, ends.

        Makes the folder, and removes it if nothing was written. `FileError`, with the number of the
        process, if another fit holds the folder.
        """
        return locked_folder(self.folder, "another fit")

    def check(self, *, resume: bool) -> None:
        """Makes sure that a fit can write to the folder; writes nothing.

        `FileError` for a folder with something in it, unless it is an earlier fit and `resume`.
        """
        if (resume and self.checkpoints().paths()) or not self._in_use():
            return
        if resume:
            raise FileError(
                f"{self.folder} is not empty, and is not the folder of a run; pass another --out."
            )
        raise FileError(
            f"{self.folder} is not empty; pass --resume to go on with the fit there, or another "
            "--out."
        )

    def _in_use(self) -> bool:
        """Returns true if there is more here than a fit leaves that never saved a checkpoint."""
        there = {path.name for path in self.folder.iterdir()} if self.folder.exists() else set()
        begun = {"config.json", CAMERAS_FILE, "data", "capture", "checkpoints", LOCK_FILE}
        begun |= {self.log.name, "tensorboard", "profile"}
        begun |= {name for name in there if PART in name}
        return bool(there - begun or self.checkpoints().paths())

    def save_config(self, config: FitConfig, **others: Any) -> None:
        """Writes `config.json` with settings and anything else to remember, making the folder."""
        self.folder.mkdir(parents=True, exist_ok=True)
        drop_parts(self.folder)
        write_json(self.folder / "config.json", {**others, "fit": config_record(config)})

    def load_config(self) -> tuple[FitConfig, dict[str, Any]]:
        """Reads `config.json`: the settings, and all else that was remembered.

        `FileError` if this is not a run folder.
        """
        path = self.folder / "config.json"
        if not path.exists():
            raise FileError(f"{self.folder} is not a run folder: it has no config.json.")
        others = read_json(path)
        check_kinds(others, {"fit?": {}, **_REMEMBERED}, str(path))
        try:
            return config_of_record(others.pop("fit")), others
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise FileError(f"{path} does not hold the settings of a fit ({error}).") from error

    def origin(self) -> tuple[float, float, float]:
        """Returns the place of the data's world from which the scene's places are counted."""
        if not self.begun:
            return (0.0, 0.0, 0.0)
        path, given = self.folder / "config.json", self.load_config()[1].get("origin", [0, 0, 0])
        place = as_matrix(given, f"{path}: `origin`")
        if place.shape != (3,) or not are_usable(place):
            raise FileError(f"{path}: `origin` must be three finite numbers; got {given}.")
        x, y, z = place.tolist()
        return x, y, z

    def data_folder(self) -> pathlib.Path:
        """Returns the data folder to which the run was fitted.

        `FileError` if the run does not name it.
        """
        data = self.load_config()[1].get("data")
        if not isinstance(data, str):
            raise FileError(
                f"{self.folder}/config.json does not name its data folder; pass it (to `eval` and "
                "`render`, with --data)."
            )
        return self.folder / data  # A folder inside the run is named relative to it.

    def find_data(self, given: str | os.PathLike | None = None) -> pathlib.Path:
        """Returns the folder of the data to evaluate on: the given one, or that which was fitted.

        `FileError` if the data that were fitted have moved.
        """
        folder = self.data_folder() if given is None else find_folder(given)
        if given is None and not folder.exists():
            raise FileError(
                f"the data of {self.folder} are no longer in {folder}; pass --data with the folder "
                "where they are now."
            )
        return folder

    def cut_log(self, step: int) -> None:
        """Drops the lines that a fit resumed at `step` will write again."""
        if self.log.exists():
            kept = [line for line in read_log(self.log) if line["step"] <= step]
            text = "".join(json.dumps(line) + "\n" for line in kept)
            replace_file(self.log, lambda file: file.write(text.encode()))

    def save_picture(self, name: str, pixels: np.ndarray) -> None:
        """Writes bytes of a picture into `pictures/`, by a name without its ending."""
        self.pictures.mkdir(parents=True, exist_ok=True)
        write_picture(self.pictures / f"{name}.png", pixels)

    def drop_pictures(self, split: str) -> None:
        """Removes the pictures of an earlier evaluation of a split."""
        ours = re.compile(re.escape(split) + r"_\d{3,}(_error)?\.png")
        for path in self.pictures.iterdir() if self.pictures.is_dir() else ():
            if ours.fullmatch(path.name):
                path.unlink()

    def save_metrics(self, metrics: dict[str, Any], report: str) -> None:
        """Writes the scores of an evaluation as `metrics.json` and as a page of text."""
        write_json(self.metrics_of(metrics["protocol"]["split"]), metrics)
        write_json(self.metrics, metrics)
        replace_file(self.report, lambda file: file.write(report.encode()))


def open_run(folder: str | os.PathLike) -> Run:
    """Returns the run in a folder.

    **Arguments:**

    - `folder`: the path of the folder; it need not exist yet.

    **Returns:**

    The run.
    """
    return Run(pathlib.Path(folder))


def next_free_run() -> Run:
    """Returns the run in the first of `runs/001`, `runs/002`, ... that does not exist."""
    runs = pathlib.Path("runs")
    taken = {path.name for path in runs.iterdir()} if runs.is_dir() else set()
    return Run(runs / next(f"{n:03d}" for n in range(1, 10**6) if f"{n:03d}" not in taken))


def read_log(path: str | os.PathLike) -> list[dict[str, Any]]:
    """Reads `metrics.jsonl`. Half a line at its end, as a killed process leaves it, is dropped."""
    try:
        lines = read_bytes(pathlib.Path(path)).decode("utf-8").splitlines(keepends=True)
        log = [json.loads(line) for line in lines if line.endswith("\n")]
    except (OSError, ValueError, RecursionError) as error:
        raise FileError(f"cannot read the log {path}: {error}.") from error
    if not all(isinstance(line, dict) and isinstance(line.get("step"), int) for line in log):
        raise FileError(f"cannot read the log {path}: it has a line without a step.")
    return log
