from collections.abc import Callable, Iterable
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from .._typing import Array
from ..data import Views
from ..images import as_bytes, Image, srgb_numbers
from ..losses import psnr, ssim
from ..rendering import render
from ..scene import Scene
from ._measures import Measures
from ._scores import Scores


# The sides of the smallest pictures that SSIM and LPIPS can compare.
_SSIM_SIDE, _LPIPS_SIDE = 11, 16


def evaluate(
    scene: Scene,
    views: Views,
    *,
    frames: Iterable[int] | None = None,
    seen: Callable[[int, Image, Image], Any] | None = None,
    measures: Measures = Measures(),
) -> list[Scores]:
    """Renders pictures from their cameras, deterministically, and compares.

    **Arguments:**

    - `scene`: fitted.
    - `views`: held-out pictures.
    - `frames`: which of them; by default all. Keyword only argument.
    - `seen`: called with number, rendered picture and truth. Keyword only argument.
    - `measures`: what else to compare by than PSNR and SSIM; `find_measures` finds all that is
      there. Keyword only argument.

    **Returns:**

    The scores of every picture.
    """
    scores = []
    for frame in range(views.frames) if frames is None else frames:
        image, truth = render(scene, views.camera(frame)), views.image(frame)
        scores.append(compare(views.names[frame], image, truth, measures))
        if seen is not None:
            seen(frame, image, truth)
    return scores


def compare(name: str, image: Image, truth: Image, measures: Measures = Measures()) -> Scores:
    """Scores one picture.

    **Arguments:**

    - `name`: of the picture.
    - `image`: rendered.
    - `truth`: what it should be.
    - `measures`: what else to compare by than PSNR and SSIM.

    **Returns:**

    The scores. SSIM is not a number for pictures under 11 pixels, nor LPIPS for those under 16.
    """
    rounded = [jnp.asarray(as_bytes(x) / np.float32(255)) for x in (image, truth)]
    numbers = [float(x) for x in (*_plain(image.rgb, truth.rgb), *_plain(*rounded))]
    exact = _perceived(measures, srgb_numbers(image), srgb_numbers(truth))
    coarse = _perceived(measures, *rounded)
    return Scores(name, *numbers, **exact, **_end(coarse), size=(image.width, image.height))


@eqx.filter_jit
def _plain(image: Array, truth: Array) -> tuple[Array, Array]:
    large = min(image.shape[:2]) >= _SSIM_SIDE
    return psnr(image, truth), ssim(image, truth) if large else jnp.asarray(jnp.nan)


def _perceived(measures: Measures, image: Array, truth: Array) -> dict[str, Any]:
    large = min(image.shape[:2]) >= _LPIPS_SIDE
    flip = None if measures.flip is None else measures.flip(image, truth)
    if measures.lpips is None:
        return {"flip": flip}
    return {"flip": flip, "lpips": measures.lpips(image, truth) if large else float("nan")}


def _end(values: dict[str, Any]) -> dict[str, Any]:
    return {name + "_8bit": value for name, value in values.items()}
