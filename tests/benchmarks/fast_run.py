"""One fit in a fresh process: how good it is after so many seconds, all of them counted."""

import dataclasses
import json
import os
import pathlib
import resource
import time
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import numpy as np
import tyro
from measure import timed

import scenegraph as sg
from scenegraph.cli._time import process_age
from scenegraph.fitting import Deadline, Every, fit
from scenegraph.runs import evaluate
from scenegraph.settings import prepare, preset


def main(
    preset_name: str = "fast",
    seconds: float = 40.0,
    downscale: int = 4,
    scene: str = "chair",
    look_every: float = 0.0,
    views: int = 25,
    picture: bool = False,
    set: tuple[str, ...] = (),
) -> None:
    """Fits until the process is so old, not counting looks on the way; prints one line of JSON."""
    folder = pathlib.Path(os.environ["SCENEGRAPH_DATA"]) / scene
    config = preset(preset_name, downscale=downscale, **_changes(set))
    config = config.replace(batch_size=config.training.rays(seconds))
    parts = prepare(config, config.data.load(folder))
    curve = _Curve(look_every)
    if look_every:
        curve.prepare(lambda: config.data.load(folder, "test"), parts.loss)
    deadline = _Paused(time.monotonic() + seconds - process_age(), curve)
    result = fit(
        parts.scene,
        parts.batches,
        optimizer=parts.optimizer,
        loss=parts.loss,
        steps=config.count_steps(seconds),
        key=parts.key,
        callbacks=[Every(1, curve)] if look_every else [],
        deadline=deadline,
    )
    jax.block_until_ready(result.scene)
    age = process_age() - curve.paused
    if look_every:
        print(json.dumps({"curve": curve.points}))
        return
    test = config.data.load(folder, "test")
    frames = np.unique(np.linspace(0, test.frames - 1, views).round().astype(int)).tolist()
    scores = evaluate(result.scene, test, frames=frames)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    answer = {
        "seconds": age,
        "psnr": float(np.mean([score.psnr for score in scores])),
        "ssim": float(np.mean([score.ssim for score in scores])),
        "steps": int(result.state.step),
        "peak_memory_gib": peak,
    }
    if picture:
        answer["picture_seconds"] = _picture(result.scene, folder)
    print(json.dumps(answer))


def _picture(scene: sg.Scene, folder: pathlib.Path) -> float:
    """How long a picture of full size takes, once compiled."""
    camera = sg.data.load_blender(folder, "test").camera(0)
    return timed(lambda: sg.render(scene, camera), 5).median


def _changes(given: tuple[str, ...]) -> dict[str, Any]:
    pairs = (item.split("=", 1) for item in given)
    return {name: json.loads(value) for name, value in pairs}


class _Curve:
    """Looks at some pixels of held-out pictures every so many seconds, off the clock."""

    def __init__(self, every: float):
        self.every, self.paused, self.points = every, 0.0, []

    def prepare(self, load: Callable[[], sg.data.Views], loss: Any) -> None:
        begin = time.monotonic()
        self.batch = sg.data.RayBatches(load(), 2048).batch(0, 0)
        self.loss = dataclasses.replace(loss, jitter=False)
        self.paused += time.monotonic() - begin

    def __call__(self, progress: Any) -> None:
        age = process_age() - self.paused
        if self.points and age < self.points[-1][0] + self.every:
            return
        begin = time.monotonic()
        self.points.append((age, _psnr(self.loss, progress.state.model, self.batch)))
        self.paused += time.monotonic() - begin


def _psnr(loss: Any, scene: sg.Scene, batch: sg.data.Batch) -> float:
    return float(_terms(loss, scene, batch).psnr[-1])


@eqx.filter_jit
def _terms(loss: Any, scene: sg.Scene, batch: sg.data.Batch) -> sg.losses.LossTerms:
    return loss(scene, None, batch, jax.random.key(0))[1]


@dataclasses.dataclass(frozen=True)
class _Paused(Deadline):
    """A deadline that waits while the curve is looked at."""

    curve: _Curve

    def horizon(self, step: int, steps: int, rate: float) -> float:
        return Deadline(self.at + self.curve.paused).horizon(step, steps, rate)


if __name__ == "__main__":
    tyro.cli(main)
