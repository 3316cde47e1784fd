"""The part of a picture that a lens' formula does not reach before it folds back."""

import numpy as np


# Angles off the axis, in radians, up to which a formula is followed, and in how many steps; and the
# pixels along each side of a picture that are looked at.
_WIDEST, _STEPS, _RASTER = 1.55, 2048, 32


def folded_share(
    model: str, coefficients: dict[str, float], pixels: np.ndarray, size: tuple[int, int]
) -> float:
    """Returns the share of a picture's pixels that lie beyond the fold of its lens.

    `pixels` is `(focal x, focal y, centre x, centre y)` in pixels, and `size` width and height.
    """
    if not any(coefficients.values()):
        return 0.0
    radius = _last_radius(model, coefficients)
    # (p - c) / f of a raster of pixels
    steps = (np.arange(_RASTER) + 0.5) / _RASTER
    x, y = np.meshgrid(
        (steps * size[0] - pixels[2]) / pixels[0], (steps * size[1] - pixels[3]) / pixels[1]
    )
    return float(np.mean(np.hypot(x, y) > radius))


def _last_radius(model: str, given: dict[str, float]) -> float:
    """Returns the distance from the axis, in focal lengths, beyond which a lens shows nothing."""
    k1, k2, k3, k4, k5, k6 = (given.get(f"k{n}", 0.0) for n in range(1, 7))
    with np.errstate(all="ignore"):  # Absurd coefficients overflow, which ends the picture, too.
        if model == "OPENCV_FISHEYE":
            # theta (1 + k1 theta^2 + ... + k4 theta^8)
            angle = np.linspace(0, np.pi, _STEPS)
            square = angle**2
            shown = angle * (1 + square * (k1 + square * (k2 + square * (k3 + square * k4))))
        else:
            # r (1 + k1 r^2 + k2 r^4 + k3 r^6) / (1 + k4 r^2 + k5 r^4 + k6 r^6); the tangential
            # terms, which are small, are left out.
            square = np.tan(np.linspace(0, _WIDEST, _STEPS)) ** 2
            above = 1 + square * (k1 + square * (k2 + square * k3))
            below = 1 + square * (k4 + square * (k5 + square * k6))
            shown = np.sqrt(square) * above / np.where(below > 0, below, np.nan)
        rising = np.diff(shown) > 0  # false where it is no number
    return float(shown[len(rising) if rising.all() else int(np.argmin(rising))])
