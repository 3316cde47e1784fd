"""The checkpoints of a fit: written by a thread; the newest and the best are kept."""

import os
import pathlib
import re
import warnings
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, NamedTuple

from ..fitting import AbstractCallback, FitState, Progress
from ..io import DamagedFile, FileError, PART
from ..parallel import gather_whole
from ._checkpoint import load_state, Snapshot, take_snapshot


_NAME = re.compile(r"(\d{8,})(?:_psnr_(-?\d+\.\d+|-?inf))?\.sg")


class _File(NamedTuple):
    """A checkpoint, as its file name describes it."""

    step: int
    psnr: float | None
    path: pathlib.Path


class Checkpoints(AbstractCallback):
    """Saves a fit every so many steps, without delaying it.

    The state is copied to the host's memory, and a thread writes it to a temporary file, which is
    then renamed. An error of the thread is raised at the next step. The newest checkpoints are
    kept, and the best one on held-out pictures.

    **Arguments:**

    - `folder`: the folder of the checkpoints; it is made.
    - `period`: the number of steps between checkpoints; 0 for calls of `save` only.
    - `keep`: the number of newest checkpoints to keep; at least one. Keyword only, as is all that
      follows.
    - `about`: a dictionary to remember in them, which JSON can hold.
    - `also`: a function that the thread calls with every snapshot that it has written.
    - `writes`: false in all but one of several processes that fit together: they only hand over
      their shards of arrays. All must save at the same steps.
    - `first`: if true, the state after the first step of a fit is saved too, unless `period` is 0:
      from then on there is something to resume from.

    Example: at the end of the `with` statement, all is on the disk.

    ```python
    with sg.runs.Checkpoints("run/checkpoints", 1000, keep=2) as checkpoints:
        result = sg.fit(scene, views, ..., callbacks=[checkpoints])
        checkpoints.save(result.state)
    ```
    """

    every = 1  # so that errors of the thread are raised at the next step

    def __init__(
        self,
        folder: str | os.PathLike,
        period: int = 0,
        *,
        keep: int = 3,
        about: dict[str, Any] | None = None,
        also: Callable[[Snapshot], Any] | None = None,
        writes: bool = True,
        first: bool = False,
    ):
        if keep < 1 or period < 0:
            raise ValueError(f"at least one checkpoint has to stay; got {keep=}, {period=}.")
        self.folder, self.period, self.keep = pathlib.Path(folder), period, keep
        self.about, self.also, self.writes = about or {}, also, writes
        self._pool = ThreadPoolExecutor(1, "checkpoints")
        self._writing: Future | None = None
        self._newest: int | None = None
        self._first = first  # All processes agree on it, unlike `_newest`.

    def __enter__(self) -> "Checkpoints":
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        self._pool.shutdown()
        if error is None:
            self.wait()

    def __call__(self, progress: Progress) -> bool:
        if self._writing is not None and self._writing.done():
            self.wait()
        if self.period and (self._first or progress.step % self.period == 0):
            self.save(progress.state)
        self._first = False
        return False

    def save(self, state: FitState, *, psnr: float | None = None) -> None:
        """Saves a state, unless that of its step is saved already; returns before it is written.

        **Arguments:**

        - `state`: the state of the fit.
        - `psnr`: the PSNR on held-out pictures, in decibels. Keyword only argument.

        **Errors:**

        `FileError` if the checkpoint before could not be written.
        """
        self.wait()
        state, step = gather_whole(state), int(state.step)
        if not self.writes or (step == self._newest and psnr is None):
            return
        snapshot, self._newest = take_snapshot(state), step
        self._writing = self._pool.submit(self._write, snapshot, step, psnr)

    def save_if_best(self, state: FitState, psnr: float) -> None:
        """Saves a state whose PSNR on held-out pictures, in decibels, is above all before."""
        self.wait()
        # All processes gather, because only the one that writes knows which is the best.
        state, best = gather_whole(state), _best(self._files())
        if best is None or best.psnr is None or psnr > best.psnr:
            self.save(state, psnr=psnr)

    def wait(self) -> None:
        """Waits for the thread; raises `FileError` if a checkpoint could not be written."""
        writing, self._writing = self._writing, None
        if writing is not None:
            writing.result()

    def restore(
        self, like: FitState, *, skipped: Callable[[DamagedFile], Any] | None = None
    ) -> FitState:
        """Reads the newest checkpoint that is whole.

        **Arguments:**

        - `like`: a fresh state of the same fit.
        - `skipped`: a function that is called with the error of every newer one that is damaged;
          by default it warns. Keyword only argument.

        **Returns:**

        The state.

        **Errors:**

        `FileError` if there is none, or one of another scene or version.
        """
        for file in reversed(self._files()):
            try:
                state = load_state(file.path, like)
            except DamagedFile as error:
                (skipped or _warn)(error)
            else:
                self._newest, self._first = file.step, False  # It need not be saved again.
                return state
        raise FileError(f"there is no whole checkpoint in {self.folder} to resume from.")

    def paths(self) -> list[pathlib.Path]:
        """Lists the checkpoints.

        **Returns:**

        Their files, oldest step first.
        """
        return [file.path for file in self._files()]

    def best(self) -> pathlib.Path | None:
        """Finds the best checkpoint on held-out pictures.

        **Returns:**

        Its file; `None` if none was scored.
        """
        best = _best(self._files())
        return None if best is None else best.path

    def _files(self) -> list[_File]:
        paths = self.folder.iterdir() if self.folder.is_dir() else ()
        named = [(_NAME.fullmatch(path.name), path) for path in paths]
        files = [_File(int(m[1]), float(m[2]) if m[2] else None, path) for m, path in named if m]
        return sorted(files, key=lambda file: (file.step, file.path.name))

    def _write(self, snapshot: Snapshot, step: int, psnr: float | None) -> None:
        scored = f"_psnr_{psnr:.4f}" if psnr is not None and psnr == psnr else ""
        path = self.folder / f"{step:08d}{scored}.sg"
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            snapshot.write(path, **self.about, psnr=psnr)
        except OSError as error:
            raise FileError(self._failed(step, error)) from error
        self._forget(path)
        if self.also is not None:
            self.also(snapshot)

    def _forget(self, written: pathlib.Path) -> None:
        """Removes checkpoints that are neither new nor best, except those of later steps."""
        files = self._files()
        now = next(file.step for file in files if file.path == written)
        past = [file for file in files if file.step <= now]
        stay = {*past[-self.keep :], _best(past)}
        # Temporary files of a process that was killed.
        begun = self.folder.glob(f"*{PART}*")
        for path in [*begun, *(file.path for file in files if file not in stay)]:
            path.unlink(missing_ok=True)

    def _failed(self, step: int, error: OSError) -> str:
        whole = [file for file in self._files() if file.step < step]
        left = f"the one of step {whole[-1].step:,} is whole" if whole else "there is none before"
        return (
            f"the checkpoint of step {step:,} could not be written to {self.folder} "
            f"({error.strerror or error}); {left}. Make room there, and resume."
        )


def _best(files: list[_File]) -> _File | None:
    scored = [file for file in files if file.psnr is not None]
    return max(scored, key=lambda file: (file.psnr, file.step), default=None)


def _warn(error: DamagedFile) -> None:
    warnings.warn(f"{error} An older checkpoint is taken.", stacklevel=3)
