"""A held-out picture beside the truth, renewed while a fit goes on.

The first is ready about twenty seconds after the start; pauses grow as the fit goes on. How long
the pictures take shows a `TimePlan` how long the report will.
"""

import math
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import jax
import numpy as np

from ..cameras import scale_resolution
from ..data import Views
from ..fitting import AbstractCallback, Progress
from ..images import Image, shrink, side_by_side
from ..rendering import render
from ..scene import Scene
from ..settings import moved_cameras
from ._held_out import HeldOut
from ._run import Run
from ._time_plan import TimePlan


_NAME = "latest"
# The width of the picture, in pixels, or a little less.
_WIDTH = 200
# Seconds after the start of the first picture, the least between two, and how much later the next
# is than the one before.
_FIRST, _LEAST, _GROWTH = 13.0, 10.0, 1.6


class LatestPicture(AbstractCallback):
    """Renders a held-out picture now and then, in a thread beside the fit."""

    every = 1

    # `begin` is the start of the fit, as a time of `time.monotonic()`.
    def __init__(
        self,
        run: Run,
        held_out: Future[HeldOut],
        plan: TimePlan,
        begin: float,
        say: Callable[[str], Any],
    ):
        self._run, self._held_out, self._plan, self._say = run, held_out, plan, say
        self._begin, self._due = begin, begin + min(_FIRST, plan.limit / 3)
        self._pool, self._drawing = ThreadPoolExecutor(1, "scenegraph-picture"), None
        self._drawn = 0

    def __enter__(self) -> "LatestPicture":
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        # In a limited time, a picture that is still compiled is not worth waiting for.
        self._pool.shutdown(wait=not self._plan.limited, cancel_futures=True)

    def __call__(self, progress: Progress) -> bool:
        if not self._held_out.done():
            return False
        held_out = self._held_out.result()  # Raises what went wrong there.
        if self._drawing is not None and self._drawing.done():
            self._drawing.result()
            self._drawing = None
        if self._drawing is None and time.monotonic() >= self._due:
            self._due = self._next()
            self._drawing = self._pool.submit(self._draw, progress.state.model, held_out.views)
            if jax.device_count() > 1:  # Two programs on many devices would wait for each other.
                self._drawing.result()
        return False

    def _next(self) -> float:
        """Returns the time of the next picture."""
        now = time.monotonic()
        return max(now + _LEAST, self._begin + _GROWTH * (now - self._begin))

    def _draw(self, scene: Scene, views: Views) -> None:
        """Renders and writes the picture; the first twice, because once it is compiled."""
        camera, truth = _small(moved_cameras(scene, views), views.frames // 2)
        if not self._drawn:
            render(scene, camera).rgb.block_until_ready()
        begin = time.monotonic()
        image = render(scene, camera)
        image.rgb.block_until_ready()
        self._plan.measure(camera.width * camera.height, time.monotonic() - begin)
        self._run.save_picture(_NAME, side_by_side([image, truth]))
        self._drawn += 1
        if self._drawn == 1:
            path = self._run.pictures / f"{_NAME}.png"
            self._say(f"{path} shows a held-out picture beside the truth as the fit goes on")


def _small(views: Views, frame: int) -> tuple[Any, Image]:
    """Returns a camera and the truth of a picture, of at most so many pixels across."""
    camera, truth = views.camera(frame), views.image(frame)
    factor = math.ceil(camera.width / _WIDTH)
    if factor == 1 or min(camera.width, camera.height) < 2 * factor:
        return camera, truth
    small = scale_resolution(camera, 1 / factor)
    rgb = shrink(np.asarray(truth.rgb), factor)
    # Where rounding makes the camera's picture larger by a pixel, the last one is repeated.
    rows, columns = (np.arange(n) for n in (small.height, small.width))
    rgb = rgb[np.minimum(rows, len(rgb) - 1)][:, np.minimum(columns, rgb.shape[1] - 1)]
    return small, Image(rgb, space=truth.space)
