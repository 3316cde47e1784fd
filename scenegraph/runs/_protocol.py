"""How scores were made, for whoever compares them with others."""

import importlib.metadata
from typing import Any

import jax.numpy as jnp

from ..data import Views
from ..images import ERROR_MAP, ERROR_SCALE
from ..losses import PIXELS_PER_DEGREE
from ._config import FitConfig
from ._measures import Measures


_PACKAGES = ("scenegraph", "jax", "flip-evaluator", "lpips")


def protocol_of(
    config: FitConfig, views: Views, split: str, pictures: int, measures: Measures
) -> dict[str, Any]:
    """How pictures were scored.

    **Arguments:**

    - `config`: of the fit.
    - `views`: the pictures.
    - `split`: their name.
    - `pictures`: how many of them were scored.
    - `measures`: the metrics beside PSNR and SSIM.

    **Returns:**

    A dictionary that JSON can hold.
    """
    return {
        "split": split,
        "pictures": pictures,
        "of": views.frames,
        "size": [int(jnp.max(views.widths)), int(jnp.max(views.heights))],
        "downscale": config.data.downscale,
        "background": config.data.background,
        "samples": "deterministic",
        "means": "over pictures; standard deviations are those of the pictures scored",
        "psnr": "mean over pictures, float, not clipped",
        "ssim": "11x11 Gaussian window, sigma 1.5, valid pixels; float, not clipped",
        **_perceptual(measures),
        "8bit": "clipped and rounded to 8 bits",
        "errors": f"absolute, mean over channels, {ERROR_MAP} from 0 to {ERROR_SCALE:g} and more",
        "versions": _versions(),
    }


def _perceptual(measures: Measures) -> dict[str, str]:
    said = {}
    if measures.flip is not None:
        said["flip"] = f"LDR, {PIXELS_PER_DEGREE:.2f} pixels per degree, mean; float, clipped"
    if measures.lpips is not None:
        said["lpips"] = "VGG16, version 0.1; float, not clipped"
        said["average"] = "geometric mean of 10^(-psnr/10), sqrt(1-ssim), lpips; of their means"
    return said


def _versions() -> dict[str, str]:
    versions = {}
    for name in _PACKAGES:
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return versions
