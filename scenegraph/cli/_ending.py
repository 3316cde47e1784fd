"""However a fit ends, its last state is saved."""

import signal
from collections.abc import Callable

from ..fitting import FitError, FitResult, FitState, StopOnSignal
from ..runs import Checkpoints, Run


class Stopped(Exception):
    """The process was told to stop, and did so in good order.

    **Arguments:**

    - `code`: to exit with: 128 and the signal's number, as a shell would say.
    - `message`: for the user.
    """

    def __init__(self, code: int, message: str):
        self.code, self.message = code, message


def fit_to_the_end(
    go: Callable[[StopOnSignal], FitResult],
    run: Run,
    checkpoints: Checkpoints,
    largest: Callable[[int], int],
) -> FitState:
    """Runs a fit, and saves the state that it ends with.

    **Arguments:**

    - `go`: the fit, with a callback that may end it.
    - `run`: for messages.
    - `checkpoints`: of the run.
    - `largest`: finds the largest number that any process of the fit has: a signal for one of them
      stops all.

    **Returns:**

    The last state.

    **Errors:**

    `FitError` if the fit could not go on; `Stopped` if a signal ended it. Both after saving.
    """
    with checkpoints, StopOnSignal() as stop:
        try:
            state = go(stop).state
        except FitError as error:
            checkpoints.save(error.state)
            where = f"The last finite scene is saved in {run.folder}."
            raise FitError(f"{error} {where}", error.state) from error
        checkpoints.save(state)
    received = largest(stop.received or 0)
    if received:
        raise Stopped(
            128 + received,
            f"stopped by {signal.Signals(received).name} at step {int(state.step):,}, which is "
            f"saved in {run.folder}; go on with `scenegraph fit --out {run.folder} --resume`",
        )
    return state
