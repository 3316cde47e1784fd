"""Callbacks of a fit into a run folder: TensorBoard, a profiler, and scores on the way."""

import dataclasses
import os
import pathlib
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import jax
import numpy as np

from ..data import Views
from ..fitting import AbstractCallback, Progress
from ..images import as_bytes, color_map, Image
from ..io import append_json, import_extra
from ..losses import LossTerms
from ..rendering import render
from ..scene import count_parameters, mean_square_weight, Scene
from ..settings import moved_cameras, training_cameras
from ._checkpoints import Checkpoints
from ._evaluate import compare, evaluate
from ._held_out import HeldOut
from ._run import Run
from ._time_plan import TimePlan


@dataclasses.dataclass
class TensorBoard(AbstractCallback):
    """Writes the course of a fit for TensorBoard, under the names of the published mip-NeRF code.

    It needs the extra `tensorboard`, which writes such files; `tensorboard --logdir FOLDER`, a
    package of its own, shows them. Call `close` after the fit.

    **Arguments:**

    - `folder`: the folder of the event files. Files of an earlier fit may be there: their numbers
      for steps that come again are hidden.
    - `every`: the number of steps between numbers.
    - `rays`: the number of rays in a batch, to report rays a second; 0 for no such report.
    - `learning_rate`: a function of the step and of the last step, such as a `LogLinear`; `None`
      for no such report.
    - `views`: the held-out pictures, of which one after the other is rendered; `None` for none.
    - `picture_every`: the number of steps between pictures.

    **Errors:**

    `MissingExtra` without the extra.
    """

    folder: str | os.PathLike
    every: int = 100
    rays: int = 0
    learning_rate: Callable[[Any, Any], Any] | None = None
    views: Views | None = None
    picture_every: int = 5000

    def __post_init__(self):
        self._package = import_extra("tensorboardX", "tensorboard", "TensorBoard")
        self._writer: Any = None
        self._pictures = 0

    def __call__(self, progress: Progress) -> bool:
        if self._writer is None:
            self._open(progress)
        self._write(_training_numbers(progress, self.rays), progress.step)
        if self.learning_rate is not None:
            rate = float(self.learning_rate(progress.step, progress.state.horizon))
            self._write({"learning_rate": rate}, progress.step)
        if self.views is not None and progress.step // self.picture_every > self._pictures:
            self._pictures = progress.step // self.picture_every
            self._write_picture(self.views, (self._pictures - 1) % self.views.frames, progress)
        return False

    def close(self) -> None:
        """Closes the file. A call after that begins another."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    def _open(self, progress: Progress) -> None:
        self._writer = self._package.SummaryWriter(
            str(self.folder), purge_step=progress.step, flush_secs=5
        )
        self._pictures = (progress.step - 1) // self.picture_every
        model = progress.state.model
        if isinstance(model, Scene):
            self._write({"num_params": count_parameters(model)}, progress.step)

    def _write(self, numbers: dict[str, float], step: int) -> None:
        for name, value in numbers.items():
            self._writer.add_scalar(name, value, step)

    def _write_picture(self, views: Views, frame: int, progress: Progress) -> None:
        begin = time.monotonic()
        camera = moved_cameras(progress.state.model, views).camera(frame)
        image, truth = render(progress.state.model, camera), views.image(frame)
        scores = compare(views.names[frame], image, truth)
        seconds = time.monotonic() - begin
        numbers = {"test_psnr": scores.psnr, "test_ssim": scores.ssim}
        rate = image.width * image.height / seconds
        self._write({**numbers, "test_rays_per_sec": rate}, progress.step)
        for name, pixels in {**_channels(image), "test_target": as_bytes(truth)}.items():
            self._writer.add_image(name, pixels, progress.step, dataformats="HWC")


def _training_numbers(progress: Progress, rays: int) -> dict[str, float]:
    info, extra, model = progress.info, progress.state.extra, progress.state.model
    numbers = {
        "train_loss": float(info.loss),
        "train_grad_norm": float(info.gradient_norm),
        "train_grad_max": float(info.gradient_max),
        "train_steps_per_sec": progress.rate,
    }
    if rays:
        numbers["train_rays_per_sec"] = progress.rate * rays
    if isinstance(extra, LossTerms):
        numbers |= {f"train_losses_{i}": float(x) for i, x in enumerate(extra.losses)}
        numbers |= {f"train_psnrs_{i}": float(x) for i, x in enumerate(extra.psnr)}
        numbers["train_psnr"] = float(extra.psnr[-1])
    if isinstance(model, Scene):
        numbers["weight_l2"] = float(mean_square_weight(model))
    return numbers


def _channels(image: Image) -> dict[str, np.ndarray]:
    """Makes colour, opacity and depth of a picture visible, as bytes."""
    shown = {"test_pred_color": as_bytes(image)}
    if image.alpha is None:
        return shown
    alpha = np.clip(np.asarray(image.alpha), 0, 1)
    shown["test_pred_acc"] = np.round(255 * alpha[..., None]).astype(np.uint8)
    if image.depth is not None:
        shown["test_pred_depth"] = _depth_colors(np.asarray(image.depth), alpha)
    return shown


def _depth_colors(depth: np.ndarray, alpha: np.ndarray) -> np.ndarray:
    """Colours depths: light is near, dark is far, white is empty."""
    there = depth[alpha > 0.5]
    near, far = np.percentile(there, [1, 99]) if there.size else (0.0, 1.0)
    colors = color_map((far - depth) / max(far - near, 1e-6), "viridis")
    mixed = alpha[..., None] * colors + (1 - alpha[..., None]) * 255
    return np.round(mixed).astype(np.uint8)


class Profile(AbstractCallback):
    """Records the work of device and Python during a few steps, once all is compiled.

    The traces are for TensorBoard's profile plug-in, XProf, and https://ui.perfetto.dev. To be used
    in a `with` statement, which ends a recording that the fit did not come to the end of.

    **Arguments:**

    - `folder`: the folder of the traces; it is made.
    - `wait`: the number of steps before the recording.
    - `steps`: the number of steps that are recorded.
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


# The number of pictures whose PSNR is logged on the way, and the share of a time limit that these
# may take each time.
_SCORED, _SCORED_SHARE = 4, 0.01


@dataclasses.dataclass
class HeldOutScore(AbstractCallback):
    """Logs the PSNR of four held-out pictures, saves the best state, and ends a good enough fit.

    Where the time is limited and four take long, they are fewer, the same ones each time.
    Of data without held-out pictures it logs the PSNR of four training pictures, and no more: how
    well these are fitted does not show when a fit is good.
    """

    every: int
    run: Run
    held_out: Future[HeldOut]
    target: float | None
    checkpoints: Checkpoints
    say: Callable[[str], Any]
    plan: TimePlan
    frames: list[int] | None = None  # the pictures that are scored, once chosen

    def __call__(self, progress: Progress) -> bool:
        if self.plan.limited and progress.step % self.every:  # The report scores the last state.
            return False
        pictures = self.held_out.result()
        views, scene = pictures.views, progress.state.model
        if self.frames is None:
            self.frames = self._choose(pictures)
        place = moved_cameras if pictures.is_held_out else training_cameras
        scores = evaluate(scene, place(scene, views), frames=self.frames)
        mean = float(np.mean([score.psnr for score in scores]))
        shown = f"{len(scores)} of {views.frames} pictures"
        if not pictures.is_held_out:
            self.say(f"training psnr {mean:.2f} dB on {shown} (none are held out)")
            append_json(self.run.log, {"step": progress.step, "training_pictures_psnr": mean})
            return False
        self.say(f"held-out psnr {mean:.2f} dB on {shown}")
        append_json(self.run.log, {"step": progress.step, "test_psnr": mean})
        self.checkpoints.save_if_best(progress.state, mean)
        return self.target is not None and mean >= self.target

    def _choose(self, pictures: HeldOut) -> list[int]:
        """Chooses pictures spread over all, as many as there is time for each time."""
        frames = pictures.views.frames
        count = self.plan.count_within(_SCORED_SHARE, max(1, pictures.rays() // frames))
        places = np.linspace(0, frames - 1, min(max(count, 1), _SCORED))
        return np.unique(places.astype(int)).tolist()
