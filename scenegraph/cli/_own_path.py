"""The film path that a data set brings along: LLFF data do."""

import pathlib
from typing import Any

import numpy as np

from ..cameras import AbstractCamera
from ..runs import FitConfig


# What commands call it, and where a run remembers it.
OWN_PATH = "data"


def own_path(folder: pathlib.Path, config: FitConfig) -> dict[str, Any]:
    """What a run remembers of its data set's own path.

    **Arguments:**

    - `folder`: with the data.
    - `config`: how they are loaded.

    **Returns:**

    The cameras under `OWN_PATH`; nothing for data that have no path.
    """
    cameras = config.data.own_path(folder)
    return {} if cameras is None else {OWN_PATH: cameras}


def own_cameras(memory: dict[str, Any], frames: int) -> list[AbstractCamera]:
    """The cameras of a data set's own path.

    **Arguments:**

    - `memory`: what the run remembers.
    - `frames`: how many, evenly spread.

    **Returns:**

    The cameras.

    **Errors:**

    `ValueError` for a run whose data set has no path.
    """
    if OWN_PATH not in memory:
        raise ValueError("this run's data set has no path of its own; pass --path orbit.")
    own = memory[OWN_PATH]
    return [own[int(index)] for index in np.linspace(0, len(own), frames, endpoint=False)]
