import dataclasses
import sys
import time

from ._callbacks import AbstractCallback, Progress
from ._last_step import ENDLESS


@dataclasses.dataclass(frozen=True)
class Console(AbstractCallback):
    """Prints a line of progress: step, loss, PSNR, rays a second, time.

    **Arguments:**

    - `every`: steps between lines.
    - `rays`: the number of rays in a batch; 0 if there are none.
    """

    every: int = 100
    rays: int = 0

    def __call__(self, progress: Progress) -> bool:
        if progress.first:
            sys.stderr.write(progress_line(progress, self.rays) + "\n")
            sys.stderr.flush()
        return False


class SignsOfLife(AbstractCallback):
    """Prints lines between those of a `Console`, so that there is never a long silence."""

    every = 1

    def __init__(self, console: Console, seconds: float = 1.8):
        self._console, self._seconds, self._said = console, seconds, time.monotonic()

    def __call__(self, progress: Progress) -> bool:
        # Long fits say less: a fiftieth of the time so far, if that is longer.
        silence = max(self._seconds, progress.seconds / 50)
        if progress.step % self._console.every == 0:
            self._said = time.monotonic()
        elif time.monotonic() - self._said > silence:
            self._said = time.monotonic()
            self._console(progress)
        return False


def progress_line(progress: Progress, rays: int) -> str:
    """Returns a line of progress, without its end; `rays` is the batch size, or 0."""
    total = round(float(progress.state.horizon))
    end = f"/{total:,}" if total < ENDLESS else ""  # Not known of the first step by the clock.
    parts = [f"step {progress.step:>7,}{end}", f"loss {float(progress.info.loss):.5f}"]
    psnr = progress.psnr()
    parts += [] if psnr is None else [f"psnr {psnr:5.2f} dB"]
    # Not known of the first step, nor just after a program was compiled anew.
    rate = progress.rate
    if rate:
        parts += [f"{rate * rays:,.0f} rays/s" if rays else f"{rate:.1f} steps/s"]
    left_out, skipped = progress.left_out(), int(progress.state.skipped)
    parts += [f"{left_out} rays left out"] if left_out else []
    parts += [f"{skipped} steps skipped: not finite"] if skipped else []
    left = [f"{(total - progress.step) / rate:.0f} s left"] if rate else []
    return "  ".join([*parts, f"{progress.seconds:.0f} s", *left])
