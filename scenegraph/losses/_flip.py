import math

import numpy as np

from .._typing import Array, Float
from ..io import import_extra


# A screen of 3840 pixels over 0.7 metres, seen from 0.7 metres.
PIXELS_PER_DEGREE = 3840 * math.pi / 180


def flip(
    image: Float[Array, "height width 3"],
    target: Float[Array, "height width 3"],
    *,
    pixels_per_degree: float = PIXELS_PER_DEGREE,
) -> float:
    """Computes FLIP: the visible difference of two pictures that alternate on a screen.

    Another package computes it, so it has no gradient.

    **Arguments:**

    - `image`, `target`: pictures of one shape, as sRGB numbers, clipped here to between 0 and 1.
    - `pixels_per_degree`: pixels per degree of the eye's field of view; by default those of a
      screen of 3840 pixels over 0.7 m, seen from 0.7 m. Keyword only argument.

    **Returns:**

    The mean over pixels, from 0 (no difference) to 1; not a number where a picture is not one.

    **Errors:**

    `MissingExtra` without the extra `metrics`.

    **Source:** FLIP for pictures of low dynamic range (Andersson et al. 2020), as computed by its
    authors' package `flip-evaluator`.
    """
    return float(np.mean(flip_map(image, target, pixels_per_degree=pixels_per_degree), dtype=float))


def flip_map(
    image: Float[Array, "height width 3"],
    target: Float[Array, "height width 3"],
    *,
    pixels_per_degree: float = PIXELS_PER_DEGREE,
) -> Float[np.ndarray, "height width"]:
    """Computes FLIP of every pixel."""
    evaluator = import_extra("flip_evaluator", "metrics", "FLIP")
    pictures = [np.asarray(x, np.float32) for x in (target, image)]
    shown = [np.ascontiguousarray(np.clip(x, 0, 1)) for x in pictures]
    parameters = {"ppd": float(pixels_per_degree)}
    # Low dynamic range, sRGB inputs, no colour map, the mean as well.
    errors, _, _ = evaluator.evaluate(*shown, "LDR", True, False, True, parameters)
    # The evaluator turns pixels that are not numbers into some number.
    known = np.all(np.isfinite(pictures), axis=(0, 3))
    return np.where(known, errors[..., 0], np.nan).astype(np.float32)
