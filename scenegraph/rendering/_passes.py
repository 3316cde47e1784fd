"""Pictures by random paths in passes, which are averaged as they come."""

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal

import jax
import numpy as np

from .._typing import RandomKey
from ..cameras import AbstractCamera
from ..images import Image
from ..integrators import Path
from ..scene import Scene
from ._pixels import ALWAYS
from ._render import render


# The most samples of a pass.
_SAMPLES = 16


def render_passes(
    scene: Scene,
    camera: AbstractCamera | str,
    path: Path,
    *,
    key: RandomKey | None = None,
    outputs: Sequence[str] = ALWAYS,
    chunk: int | Literal["auto"] = "auto",
    track: Callable[[range], Iterable[int]] = iter,
) -> Image:
    """Renders a picture by random paths in passes of few samples, and averages them.

    **Arguments:**

    - `scene`, `camera`, `key`, `outputs`, `chunk`: as for `render`.
    - `path`: the integrator; its samples are rounded up to whole passes.
    - `track`: maps the numbers of the passes to an iterator over them, such as one that shows a
      progress bar. Keyword only argument, like all from `key` on.

    **Returns:**

    The mean of the passes. If `track` ends early or is interrupted by Ctrl-C after the first of
    them, that of those that are done.
    """
    count = -(-path.samples // _SAMPLES)
    part = dataclasses.replace(path, samples=-(-path.samples // count))
    key = jax.random.key(0) if key is None else key
    mean = None
    try:
        for number in track(range(count)):
            own = jax.random.fold_in(key, number)
            image = render(scene, camera, part, key=own, outputs=outputs, chunk=chunk)
            mean = _Mean(image) if mean is None else mean
            mean.add(image)
    except KeyboardInterrupt:
        if mean is None:
            raise
    assert mean is not None
    return mean.image()


# Fields that are averaged, those that are weighted by opacity, and those that are the same always.
_EVEN, _WEIGHTED = ("rgb", "alpha"), ("depth", "normal", "albedo", "position")


class _Mean:
    """The mean of pictures so far."""

    def __init__(self, like: Image):
        self.first, self.count = like, 0
        self.sums: dict[str, Any] = {}

    def add(self, image: Image) -> None:
        """Adds a picture."""
        self.count += 1
        alpha = np.asarray(image.alpha, np.float64)
        for name in (*_EVEN, *_WEIGHTED, "variance"):
            value = getattr(image, name)
            if value is None:
                continue
            value = np.asarray(value, np.float64)
            if name in _WEIGHTED:
                value = value * alpha.reshape(*alpha.shape, *(1,) * (value.ndim - 2))
            self.sums[name] = self.sums.get(name, 0.0) + value

    def image(self) -> Image:
        """Returns the mean."""
        alpha, fields = self.sums["alpha"], {}
        for name, total in self.sums.items():
            before = np.asarray(getattr(self.first, name))
            if name in _EVEN:
                value = total / self.count
            elif name == "variance":
                # Of independent pictures, the variance of the mean is that of the sum over n^2.
                value = total / self.count**2
            else:
                opacity = alpha.reshape(*alpha.shape, *(1,) * (total.ndim - 2))
                value = np.where(opacity > 0, total / np.where(opacity > 0, opacity, 1), before)
                if name == "normal":
                    length = np.linalg.norm(value, axis=-1, keepdims=True)
                    value = value / np.where(length > 0, length, 1)
            fields[name] = jax.numpy.asarray(value, before.dtype)
        return dataclasses.replace(self.first, **fields)
