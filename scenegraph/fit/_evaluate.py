import dataclasses
from collections.abc import Callable, Iterable
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from .._typing import Array
from ..data import Views
from ..images import as_bytes, Image
from ..losses import psnr, ssim
from ..render import render
from ..scene import Scene


@dataclasses.dataclass(frozen=True)
class Scores:
    """How near one picture comes to the truth.

    **Arguments:**

    - `name`: of the picture.
    - `psnr`, `ssim`: of the floating picture, not clipped.
    - `psnr_8bit`, `ssim_8bit`: after clipping and rounding to 8 bits, as a file holds it.
    """

    name: str
    psnr: float
    ssim: float
    psnr_8bit: float
    ssim_8bit: float


def evaluate(
    scene: Scene,
    views: Views,
    *,
    frames: Iterable[int] | None = None,
    seen: Callable[[int, Image, Image], Any] | None = None,
) -> list[Scores]:
    """Renders pictures from their cameras, deterministically, and compares.

    **Arguments:**

    - `scene`: fitted.
    - `views`: held-out pictures.
    - `frames`: which of them; by default all. Keyword only argument.
    - `seen`: called with number, rendered picture and truth. Keyword only argument.

    **Returns:**

    The scores of every picture.
    """
    scores = []
    for frame in range(views.frames) if frames is None else frames:
        image, truth = render(scene, views.camera(frame)), views.image(frame)
        scores.append(compare(views.names[frame], image, truth))
        if seen is not None:
            seen(frame, image, truth)
    return scores


def compare(name: str, image: Image, truth: Image) -> Scores:
    """Scores one picture.

    **Arguments:**

    - `name`: of the picture.
    - `image`: rendered.
    - `truth`: what it should be.

    **Returns:**

    The scores. SSIM is not a number for pictures under 11 pixels.
    """
    rounded = jnp.asarray(as_bytes(image) / np.float32(255))
    exact = _scores(image.rgb, truth.rgb)
    coarse = _scores(rounded, jnp.asarray(as_bytes(truth) / np.float32(255)))
    return Scores(name, *(float(x) for x in (*exact, *coarse)))


@eqx.filter_jit
def _scores(image: Array, truth: Array) -> tuple[Array, Array]:
    large = min(image.shape[:2]) >= 11
    return psnr(image, truth), ssim(image, truth) if large else jnp.asarray(jnp.nan)


def summary(scores: list[Scores], protocol: dict[str, Any]) -> dict[str, Any]:
    """What `metrics.json` holds.

    **Arguments:**

    - `scores`: of every picture.
    - `protocol`: how they were made, for the reader.

    **Returns:**

    Means over pictures, every picture's own, and the protocol.
    """
    names = ["psnr", "ssim", "psnr_8bit", "ssim_8bit"]
    means = {name: float(np.mean([getattr(score, name) for score in scores])) for name in names}
    return {
        **means,
        "per_image": [dataclasses.asdict(score) for score in scores],
        "protocol": protocol,
    }
