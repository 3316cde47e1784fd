"""The scores of one picture, and what they come to over many."""

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

from ..losses import average_error


METRICS = ("psnr", "ssim", "flip", "lpips", "average")
_MEASURED = ("psnr", "ssim", "flip", "lpips")


@dataclasses.dataclass(frozen=True)
class Scores:
    """How near one picture comes to the truth.

    **Arguments:**

    - `name`: of the picture.
    - `psnr`, `ssim`: of the floating picture, not clipped.
    - `psnr_8bit`, `ssim_8bit`: after clipping and rounding to 8 bits, as a file holds it.
    - `flip`, `lpips`, `flip_8bit`, `lpips_8bit`: likewise, but that FLIP clips; `None` where they
      were not measured.
    - `size`: width and height in pixels.
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

    def record(self) -> dict[str, Any]:
        """As JSON can hold it: with the average error, and without what is not a number.

        **Returns:**

        A dictionary.
        """
        values = {name: _known(getattr(self, name)) for name in _keys(_MEASURED)}
        return {"name": self.name, "size": list(self.size), **values, **_averages(values)}


def summary(
    scores: Sequence[Scores], protocol: dict[str, Any], missing: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """What `metrics.json` holds.

    **Arguments:**

    - `scores`: of every picture.
    - `protocol`: how they were made, for the reader.
    - `missing`: why some metrics were not measured.

    **Returns:**

    Means over pictures, their standard deviations, the same for every size of picture, every
    picture's own scores, and the protocol. `None` stands for what was not measured in every
    picture.
    """
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
    """What several means, of sizes or of scenes, come to, as it is published.

    **Arguments:**

    - `means`: of each, by the names in `METRICS`.

    **Returns:**

    Their means; but the average error is that of the means, not the mean of the average errors.
    """
    values = {name: _over(np.mean, [mean[name] for mean in means]) for name in _MEASURED}
    return {**values, "average": _average(*(values[name] for name in ("psnr", "ssim", "lpips")))}


def _statistics(scores: Sequence[Scores]) -> dict[str, dict[str, float | None]]:
    records = [score.record() for score in scores]
    columns = {name: [record[name] for record in records] for name in _keys(METRICS)}
    means = {name: _over(np.mean, column) for name, column in columns.items()}
    deviations = {name: _over(np.std, column) for name, column in columns.items()}
    # As published: the average of means, not the mean of averages.
    return {"mean": {**means, **_averages(means)}, "std": deviations}


def _over(function: Any, column: list[float | None]) -> float | None:
    """Of all or of nothing: what some pictures lack has no mean over all."""
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
    """Names of sizes, largest first: `full`, `1/2`, `1/4`; pixels, where they are no such parts."""
    ratios = [max(sizes[0]) / max(max(size), 1) for size in sizes]
    whole = [round(ratio) for ratio in ratios]
    even = all(abs(ratio / n - 1) < 0.02 for ratio, n in zip(ratios, whole, strict=True))
    if len(set(whole)) < len(sizes) or not even:
        return [f"{width}x{height}" for width, height in sizes]
    return ["full" if n == 1 else f"1/{n}" for n in whole]
