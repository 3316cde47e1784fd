"""The scores of one picture, their means over many, and how they were measured."""

import dataclasses
import importlib.metadata
import math
from collections.abc import Mapping, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

from ..data import Views
from ..images import ERROR_MAP, ERROR_SCALE
from ..losses import average_error, PIXELS_PER_DEGREE
from ..settings import DataSettings


METRICS = ("psnr", "ssim", "flip", "lpips", "average")
_MEASURED = ("psnr", "ssim", "flip", "lpips")
_MASKED = "psnr over pixels that count; the others are as rendered for all other metrics"
_PACKAGES = ("scenegraph", "jax", "flip-evaluator", "lpips")


_CORRECTED = "PSNR after the affine map of colours, a picture each, that fits best; float"


@dataclasses.dataclass(frozen=True)
class Scores:
    """The scores of one picture.

    **Arguments:**

    - `name`: the name of the picture.
    - `psnr`, `ssim`: the scores of the floating picture, not clipped; PSNR in decibels.
    - `psnr_8bit`, `ssim_8bit`: the scores after clipping and rounding to 8 bits, as in a file.
    - `flip`, `lpips`, `flip_8bit`, `lpips_8bit`: the same for these metrics, but that FLIP clips;
      `None` where they were not measured.
    - `size`: width and height in pixels.
    - `psnr_corrected`: the PSNR after the affine map of colours that fits best; `None` for pictures
      with an opacity, which are rendered ones.
    """

    name: str
    psnr: float
    ssim: float
    psnr_8bit: float
    ssim_8bit: float
    flip: float | None = None
    lpips: float | None = None
    flip_8bit: float | None = None
    lpips_8bit: float | None = None
    size: tuple[int, int] = (0, 0)
    psnr_corrected: float | None = None

    def record(self) -> dict[str, Any]:
        """Returns the scores as JSON holds them: with the average error; NaN becomes `None`."""
        values = {name: _known(getattr(self, name)) for name in _keys(_MEASURED)}
        record = {"name": self.name, "size": list(self.size), **values, **_averages(values)}
        if self.psnr_corrected is not None:
            record["psnr_corrected"] = _known(self.psnr_corrected)
        return record


def summary(
    scores: Sequence[Scores], protocol: dict[str, Any], missing: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Returns the content of `metrics.json`: means and deviations, of all and of every size."""
    sizes = sorted({score.size for score in scores}, key=lambda size: (-max(size), -size[0]))
    groups = [[score for score in scores if score.size == size] for size in sizes]
    scales = [
        {"scale": label, "size": list(size), "pictures": len(group), **_statistics(group)}
        for label, size, group in zip(_labels(sizes), sizes, groups, strict=True)
    ]
    whole = _statistics(scores)
    return {
        **whole["mean"],
        "std": whole["std"],
        "scales": scales,
        "per_image": [score.record() for score in scores],
        "missing": dict(missing or {}),
        "protocol": protocol,
    }


def mean_of_means(means: Sequence[Mapping[str, float | None]]) -> dict[str, float | None]:
    """Averages means of sizes or scenes; the average error is that of the means, as published."""
    values = {name: _over(np.mean, [mean[name] for mean in means]) for name in _MEASURED}
    return {**values, "average": _average(*(values[name] for name in ("psnr", "ssim", "lpips")))}


def _statistics(scores: Sequence[Scores]) -> dict[str, dict[str, float | None]]:
    records = [score.record() for score in scores]
    names = [*_keys(METRICS), *(name for name in records[0] if name == "psnr_corrected")]
    columns = {name: [record.get(name) for record in records] for name in names}
    means = {name: _over(np.mean, column) for name, column in columns.items()}
    deviations = {name: _over(np.std, column) for name, column in columns.items()}
    # As published, the average error is that of the means, not the mean of average errors.
    return {"mean": {**means, **_averages(means)}, "std": deviations}


def _over(function: Any, column: list[float | None]) -> float | None:
    """Applies a statistic to a metric, unless some pictures lack it."""
    numbers = [x for x in column if x is not None]
    if len(numbers) < len(column) or not numbers:
        return None
    with np.errstate(invalid="ignore"):  # Equal pictures have an infinite PSNR.
        return _known(function(numbers))


def _averages(values: Mapping[str, float | None]) -> dict[str, float | None]:
    return {
        f"average{end}": _average(*(values[name + end] for name in ("psnr", "ssim", "lpips")))
        for end in ("", "_8bit")
    }


def _average(psnr: float | None, ssim: float | None, lpips: float | None) -> float | None:
    if psnr is None or ssim is None or lpips is None:
        return None
    # Equal pictures' similarity may round to a little more than one.
    return _known(float(average_error(*map(jnp.asarray, (psnr, min(ssim, 1.0), lpips)))))


def _known(value: float | None) -> float | None:
    return None if value is None or math.isnan(value) else float(value)


def _keys(names: Sequence[str]) -> list[str]:
    return [name + end for end in ("", "_8bit") for name in names]


def _labels(sizes: Sequence[tuple[int, int]]) -> list[str]:
    """Names sizes, largest first: `full`, `1/2`, `1/4`; or in pixels, if they are no such parts."""
    ratios = [max(sizes[0]) / max(max(size), 1) for size in sizes]
    whole = [round(ratio) for ratio in ratios]
    even = all(abs(ratio / n - 1) < 0.02 for ratio, n in zip(ratios, whole, strict=True))
    if len(set(whole)) < len(sizes) or not even:
        return [f"{width}x{height}" for width, height in sizes]
    return ["full" if n == 1 else f"1/{n}" for n in whole]


def describe_protocol(
    data: DataSettings, views: Views, split: str, pictures: int, *, flip: bool, lpips: bool
) -> dict[str, Any]:
    """Describes how pictures were scored, as `metrics.json` holds it."""
    kinds = {}
    if flip:
        kinds["flip"] = f"LDR, {PIXELS_PER_DEGREE:.2f} pixels per degree, mean; float, clipped"
    if lpips:
        kinds["lpips"] = "VGG16, version 0.1; float, not clipped"
        kinds["average"] = "geometric mean of 10^(-psnr/10), sqrt(1-ssim), lpips; of their means"
    return {
        "split": split,
        "pictures": pictures,
        "of": views.frames,
        "size": [int(jnp.max(views.widths)), int(jnp.max(views.heights))],
        "downscale": data.downscale,
        "background": data.background,
        "samples": "deterministic",
        "means": "over pictures; standard deviations are those of the pictures scored",
        "psnr": "mean over pictures, float, not clipped",
        "ssim": "11x11 Gaussian window, sigma 1.5, valid pixels; float, not clipped",
        **kinds,
        **_describe_masks(views),
        **({} if views.pixels.shape[1] == 4 else {"corrected": _CORRECTED}),
        "8bit": "clipped and rounded to 8 bits",
        "errors": f"absolute, mean over channels, {ERROR_MAP} from 0 to {ERROR_SCALE:g} and more",
        "versions": _versions(),
    }


def _describe_masks(views: Views) -> dict[str, Any]:
    """Says what masks leave out of the scores, and what else was done to the pictures."""
    known = {} if views.weights is None else {"masks": _MASKED}
    return {**known, **({"notes": list(views.notes)} if views.notes else {})}


def _versions() -> dict[str, str]:
    versions = {}
    for name in _PACKAGES:
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return versions
