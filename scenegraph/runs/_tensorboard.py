import dataclasses
import os
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from ..data import Views
from ..fitting import AbstractCallback, Progress
from ..images import as_bytes, color_map, Image
from ..io import import_extra
from ..losses import LossTerms
from ..rendering import render
from ..scene import count_parameters, mean_square_weight, Scene
from ._evaluate import compare


@dataclasses.dataclass
class TensorBoard(AbstractCallback):
    """Writes what a fit tells to TensorBoard, under the names of the published mip-NeRF code.

    It needs the extra `tensorboard`, which writes such files; `tensorboard --logdir FOLDER`, a
    package of its own, shows them. Call `close` after the fit.

    **Arguments:**

    - `folder`: for the event files. Files of an earlier fit may be there: what they tell of steps
      that come again is hidden.
    - `every`: steps between numbers.
    - `rays`: in a batch, to report rays a second; 0 if that makes no sense.
    - `learning_rate`: a function of the step and of the last step, such as a `LogLinear`; `None`
      if it is not to be shown.
    - `views`: held-out pictures, of which one after the other is rendered; `None` for none.
    - `picture_every`: steps between them.

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
        self._write(_training(progress, self.rays), progress.step)
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
        image, truth = render(progress.state.model, views.camera(frame)), views.image(frame)
        scores = compare(views.names[frame], image, truth)
        seconds = time.monotonic() - begin
        numbers = {"test_psnr": scores.psnr, "test_ssim": scores.ssim}
        rate = image.width * image.height / seconds
        self._write({**numbers, "test_rays_per_sec": rate}, progress.step)
        for name, pixels in {**_channels(image), "test_target": as_bytes(truth)}.items():
            self._writer.add_image(name, pixels, progress.step, dataformats="HWC")


def _training(progress: Progress, rays: int) -> dict[str, float]:
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
    """All that a rendered picture shows, as bytes."""
    shown = {"test_pred_color": as_bytes(image)}
    if image.alpha is None:
        return shown
    alpha = np.clip(np.asarray(image.alpha), 0, 1)
    shown["test_pred_acc"] = np.round(255 * alpha[..., None]).astype(np.uint8)
    if image.depth is not None:
        shown["test_pred_depth"] = _depth_colors(np.asarray(image.depth), alpha)
    return shown


def _depth_colors(depth: np.ndarray, alpha: np.ndarray) -> np.ndarray:
    """Light is near, dark is far, and white is what is not there."""
    there = depth[alpha > 0.5]
    near, far = np.percentile(there, [1, 99]) if there.size else (0.0, 1.0)
    colors = color_map((far - depth) / max(far - near, 1e-6), "viridis")
    mixed = alpha[..., None] * colors + (1 - alpha[..., None]) * 255
    return np.round(mixed).astype(np.uint8)
