import os
import pathlib
from typing import Any

import jax

from ..fitting import AbstractCallback, Progress


class Profile(AbstractCallback):
    """Records what the device and Python do during a few steps, once all is compiled.

    The traces are for TensorBoard's profile plug-in, XProf, and https://ui.perfetto.dev. To be used
    in a `with` statement, which ends a recording that the fit did not come to the end of.

    **Arguments:**

    - `folder`: for the traces; it is made.
    - `wait`: steps before the recording.
    - `steps`: that are recorded.
    """

    every = 1

    def __init__(self, folder: str | os.PathLike, wait: int = 10, steps: int = 5):
        if wait < 1 or steps < 1:
            raise ValueError(f"a profile waits and records at least a step; got {wait}, {steps}.")
        self.folder, self.wait, self.steps = pathlib.Path(folder), wait, steps
        self._seen, self._running = 0, False

    def __enter__(self) -> "Profile":
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if self._running:
            self._stop()

    def __call__(self, progress: Progress) -> bool:
        self._seen += 1
        if self._seen == self.wait:
            jax.block_until_ready(progress.info)
            jax.profiler.start_trace(self.folder)
            self._running = True
        elif self._running and self._seen == self.wait + self.steps:
            jax.block_until_ready(progress.info)
            self._stop()
        return False

    def _stop(self) -> None:
        jax.profiler.stop_trace()
        self._running = False
