import signal
from typing import Any

from ._callbacks import AbstractCallback, Progress


class StopOnSignal(AbstractCallback):
    """Ends a fit after the step at hand when the process gets SIGTERM or SIGINT (Ctrl-C).

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
        for number in (signal.SIGTERM, signal.SIGINT):
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
