import abc
import dataclasses
import os
import signal
from typing import Any

from ..io import append_json
from ._flat import Flat
from ._state import FitState, StepInfo


@dataclasses.dataclass(frozen=True)
class Progress:
    """The progress of a fit, as callbacks see it.

    **Arguments:**

    - `step`: the number of steps taken.
    - `packed`: the fit's state after them, perhaps as a plain list of arrays; `state` unpacks it.
    - `info`: the last step's loss and gradient norm.
    - `seconds`: the time since the fit began, compilation included.
    - `rate`: steps a second, over the last 20 seconds.
    - `first`: true in the first process of the fit, which alone should write files.
    """

    step: int
    packed: FitState | Flat
    info: StepInfo
    seconds: float
    rate: float
    first: bool = True

    @property
    def state(self) -> FitState:
        """The fit's state after the step."""
        return self.packed.tree if isinstance(self.packed, Flat) else self.packed

    def psnr(self) -> float | None:
        """Returns the PSNR of the last batch, or `None` for losses without one.

        **Returns:**

        Decibels, of the finest level.
        """
        values = getattr(self.state.extra, "psnr", None)
        return None if values is None else float(values[-1])

    def left_out(self) -> int:
        """Returns how many rays of the last batch did not count, for want of samples or layers.

        **Returns:**

        Their number; 0 for losses that count none.
        """
        return int(getattr(self.state.extra, "left_out", 0))


class AbstractCallback(abc.ABC):
    """A function that a fit calls every so many steps, and that may end the fit.

    Where several processes fit together, it is called in all of them, and ends the fit if it
    returns true in any of them. Implementations have a field `every`, the steps between calls.
    """

    every: int

    @abc.abstractmethod
    def __call__(self, progress: Progress) -> bool:
        """Reacts to the progress after every `every`-th step, and after the last.

        **Arguments:**

        - `progress`: the number of the step, the state after it, its loss.

        **Returns:**

        True to end the fit.
        """


@dataclasses.dataclass(frozen=True)
class JsonLines(AbstractCallback):
    """Appends a line of JSON to a file: step, loss, PSNR, gradient, time, and what did not count.

    **Arguments:**

    - `path`: the path of the file.
    - `every`: steps between lines.
    - `rays`: the number of rays in a batch, to report rays a second; 0 if there are none.
    """

    path: str | os.PathLike
    every: int = 100
    rays: int = 0

    def __call__(self, progress: Progress) -> bool:
        line = {
            "step": progress.step,
            "loss": float(progress.info.loss),
            "psnr": progress.psnr(),
            "gradient_norm": float(progress.info.gradient_norm),
            "skipped": int(progress.state.skipped),
            "left_out": progress.left_out(),
            "seconds": round(progress.seconds, 3),
            "rays_per_second": round(progress.rate * self.rays, 1),
        }
        if progress.first:
            append_json(self.path, line)
        return False


@dataclasses.dataclass(frozen=True)
class Every(AbstractCallback):
    """Calls any function.

    **Arguments:**

    - `every`: steps between calls.
    - `function`: a function of the `Progress`; its result is ignored.
    """

    every: int
    function: Any

    def __call__(self, progress: Progress) -> bool:
        self.function(progress)
        return False


# Windows has no SIGHUP.
_STOPPING = [
    signal.Signals[name]
    for name in ("SIGTERM", "SIGINT", "SIGHUP")
    if name in signal.Signals.__members__
]


class StopOnSignal(AbstractCallback):
    """Ends a fit after the step at hand when the process gets SIGTERM, SIGHUP or SIGINT (Ctrl-C).

    A SIGHUP, which a closed terminal sends, is ignored where it was before, as under `nohup`.
    It is used in a `with` statement, in the main thread. A second signal acts as usual.

    Example:

    ```python
    with sg.fitting.StopOnSignal() as stop:
        result = sg.fit(scene, views, ..., callbacks=[stop])
    if stop.received:
        sg.runs.save_state("state.sg", result.state)
    ```
    """

    every = 1

    def __init__(self):
        self.received: signal.Signals | None = None
        self._before: dict[int, Any] = {}

    def __enter__(self) -> "StopOnSignal":
        for number in _STOPPING:
            if signal.getsignal(number) is not signal.SIG_IGN:
                self._before[number] = signal.signal(number, self._receive)
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        self._restore()

    def __call__(self, progress: Progress) -> bool:
        return self.received is not None

    def _receive(self, number: int, frame: Any) -> None:
        self.received = signal.Signals(number)
        self._restore()

    def _restore(self) -> None:
        while self._before:
            signal.signal(*self._before.popitem())
