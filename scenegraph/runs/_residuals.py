"""Training pictures that a fit shows badly: blurred ones, and those with wrong cameras."""

import time
from typing import Any, NamedTuple

import numpy as np

from ..cameras import scale_resolution
from ..data import Views
from ..images import shrink
from ..rendering import render
from ..scene import Scene
from ._time_plan import TimePlan


# Pictures are compared at no more than this width, in pixels; where a fit has less time than this,
# in seconds, they are not.
_WIDTH, _LEAST_LIMIT = 48, 60.0
# An outlier's PSNR is lower than the median by so many robust deviations, and so many decibels;
# so many are named.
_DEVIATIONS, _DECIBELS, _NAMED = 3.5, 2.0, 20
# The opacity below which nothing is seen of a scene, and what is said of one that is empty.
_EMPTY = 0.01
# What `metrics.json` holds of training pictures.
RESIDUALS = {
    "size": [int],
    "pictures": int,
    "psnr": float,
    "outliers": [{"name": str, "psnr": float}],
    "more": int,
    "empty?": bool,
}
EMPTY_SCENE = (
    "the scene is empty: no training picture shows anything of it. Lower the learning rate "
    "(--learning-rate), or try another --seed."
)


def residual_rays(views: Views) -> int:
    """Counts the rays by which all pictures are compared."""
    sizes = [_small_size(views, frame) for frame in range(views.frames)]
    return int(np.sum(np.prod(sizes, axis=1)))


def find_outliers(scene: Scene, views: Views, plan: TimePlan) -> dict[str, Any] | None:
    """Compares all training pictures with the fit, at low resolution; `None` for want of time.

    Returns the median PSNR and the pictures far below it, as `metrics.json` holds them.
    """
    most = max(int(np.prod(_small_size(views, frame))) for frame in range(views.frames))
    if plan.limit < _LEAST_LIMIT or plan.affordable(most) < views.frames:
        return None
    begin = time.monotonic()
    small = [_compare_small(scene, views, frame) for frame in range(views.frames)]
    values = np.array([one.psnr for one in small])
    middle = float(np.median(values))
    # 1.4826 times the median deviation is the standard deviation of normal numbers.
    spread = 1.4826 * float(np.median(np.abs(values - middle)))
    least = middle - max(_DEVIATIONS * spread, _DECIBELS)
    worst = [index for index in np.argsort(values) if values[index] < least]
    return {
        "pictures": views.frames,
        "size": list(_small_size(views, 0)),
        "psnr": middle,
        "outliers": [
            {"name": views.names[index], "psnr": float(values[index])} for index in worst[:_NAMED]
        ],
        "more": max(0, len(worst) - _NAMED),
        "empty": max(one.opacity for one in small) < _EMPTY,
        "seconds": round(time.monotonic() - begin, 1),
    }


def describe_outliers(found: dict[str, Any]) -> str:
    """Names the outliers in a sentence of the report."""
    width, height = found["size"]
    head = f"{EMPTY_SCENE[0].upper()}{EMPTY_SCENE[1:]} " if found.get("empty") else ""
    head += (
        f"The median PSNR of the {found['pictures']} training pictures is {found['psnr']:.2f} dB, "
        f"at {width}x{height} pixels."
    )
    if not found["outliers"]:
        return f"{head} None is far below it."
    listed = "\n".join(f"- {one['name']}: {one['psnr']:.2f} dB" for one in found["outliers"])
    more = f"\n- and {found['more']} more" if found["more"] else ""
    return (
        f"{head} These are far below it: blurred, otherwise exposed, taken from where no other "
        f"was, or with a wrong camera.\n\n{listed}{more}"
    )


def _block(views: Views, frame: int) -> int:
    return max(1, -(-int(views.widths[frame]) // _WIDTH))


def _small_size(views: Views, frame: int) -> tuple[int, int]:
    block = _block(views, frame)
    size = int(views.widths[frame]), int(views.heights[frame])
    return max(1, size[0] // block), max(1, size[1] // block)


class _Small(NamedTuple):
    """The score of a small picture, and its largest opacity."""

    psnr: float
    opacity: float


def _compare_small(scene: Scene, views: Views, frame: int) -> _Small:
    """Compares one picture, averaged over blocks, with what its camera sees of the scene."""
    (width, height), block = _small_size(views, frame), _block(views, frame)
    # A rest that fills no block is cut off, at the right and the bottom.
    camera = scale_resolution(views.camera(frame), 1 / block).resized(width, height)
    rendered = render(scene, camera)
    image = np.asarray(rendered.rgb)
    opacity = 1.0 if rendered.alpha is None else float(np.max(rendered.alpha))
    truth = np.asarray(views.image(frame).rgb)
    truth = shrink(truth[: height * block, : width * block], block) if block > 1 else truth
    squares = np.mean((np.clip(image, 0, 1) - truth) ** 2, axis=-1)
    weight = np.ones(squares.shape)
    if views.weights is not None:
        counts = np.asarray(views.weights[views.part(frame)] > 0, float)
        counts = counts.reshape(int(views.heights[frame]), -1)[: height * block, : width * block]
        # A block counts if all of its pixels do.
        weight = counts.reshape(height, block, width, block).mean(axis=(1, 3)) == 1
    if not np.any(weight):
        return _Small(float("inf"), opacity)
    mean = np.sum(weight * squares) / np.sum(weight)
    return _Small(float(-10 * np.log10(max(mean, 1e-10))), opacity)
