"""The pictures of a report, and where their cameras are in the scene."""

import contextlib
import dataclasses
import pathlib
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import equinox as eqx
import numpy as np

from ..data import Views
from ..scene import Scene
from ..settings import alignment_steps, BACKWARD, DataSettings, place_cameras, RAYS
from ._time_plan import TimePlan


# Seconds that have to be left for the poses of held-out pictures to be fitted.
_LEAST = 40.0


class HeldOut(NamedTuple):
    """The pictures of one split of a data folder, and how they were read."""

    folder: pathlib.Path
    split: str
    views: Views
    settings: DataSettings
    cameras: str | None = None  # how they were found, where not as they were given

    @property
    def is_held_out(self) -> bool:
        """False where there are only training pictures."""
        return self.split != "train"

    def rays(self) -> int:
        """Counts the rays of all pictures."""
        return int(np.sum(np.asarray(self.views.widths) * np.asarray(self.views.heights)))


def place_held_out(
    scene: Scene, held_out: HeldOut, say: Callable[[str], Any], plan: TimePlan = TimePlan()
) -> HeldOut:
    """Places the cameras of pictures in a scene whose own cameras were corrected, and says how."""
    # At most half of the time goes into it, and none of it where compiling alone would take that.
    rays = BACKWARD * RAYS * held_out.views.frames
    affordable = plan.affordable(rays) // 2 if plan.limited else None
    hurried = plan.limited and plan.end - time.monotonic() < _LEAST
    steps = 0 if hurried else alignment_steps(affordable)
    views, how = place_cameras(scene, held_out.views, held_out.split, steps)
    if how is None:
        return held_out
    say(f"cameras of the {held_out.split} pictures: {how}")
    return held_out._replace(views=views, cameras=how)


def read_held_out(
    settings: DataSettings, folder: pathlib.Path, split: str, views: Views
) -> HeldOut:
    """Reads the pictures of the report, which are the training pictures if there are no others."""
    if split == "train":
        return HeldOut(folder, split, views, settings)
    others = settings.load(folder, split)
    note = _shared_pictures(views, others, split)
    if note is not None:
        others = dataclasses.replace(others, notes=(note, *others.notes))
    return HeldOut(folder, split, others, settings)


def _shared_pictures(views: Views, others: Views, split: str) -> str | None:
    """Says which pictures of a split are training pictures, by names, or by all of its cameras."""
    shared = set(others.names) & set(views.names)
    if shared:
        return (
            f"{len(shared)} of {others.frames} {split} pictures, such as {min(shared)}, are "
            "training pictures, too: scores are those of pictures that were fitted"
        )
    # Copies in a folder of their own have other names.
    if eqx.tree_equal(others.cameras, views.cameras):
        return (
            f"all {others.frames} {split} pictures have the cameras of the training pictures, as "
            "if they were copies: scores are then those of pictures that were fitted"
        )
    return None


@contextlib.contextmanager
def after_first_step() -> Iterator[tuple[ThreadPoolExecutor, threading.Event]]:
    """Makes a thread whose work waits for an event: the first step needs all cores."""
    stepped = threading.Event()
    with ThreadPoolExecutor(1, "scenegraph-held-out") as pool:
        pool.submit(stepped.wait)
        try:
            yield pool, stepped
        finally:
            stepped.set()
