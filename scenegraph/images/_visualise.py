"""Colours, depth, opacity and all else that is rendered, as pictures to be written."""

from collections.abc import Sequence
from typing import Literal

import jax.numpy as jnp
import numpy as np

from ._color_maps import color_map
from ._image import Image


Quantity = Literal[
    "rgb",
    "depth",
    "median-depth",
    "opacity",
    "normals",
    "albedo",
    "uv",
    "positions",
    "surfaces",
    "candidates",
]
# The per cent of a film's depths that are off the scale at either end.
_OUTLIERS = 1.0


def visualise(
    image: Image,
    quantity: Quantity,
    *,
    depths: tuple[float, float] = (0.0, 1.0),
    colors: str = "turbo",
) -> Image:
    """Turns one quantity of a picture into a picture of the same size, to be written as it is."""
    if quantity == "rgb":
        return image
    if quantity == "candidates":
        lengths = _channel(image, "candidates", quantity)
        values = lengths / max(int(lengths.max()), 1)
        return Image(jnp.asarray(color_map(values, colors) / np.float32(255)))
    # Opacity is white where it is one; all else fades to white where the picture is not opaque.
    alpha = _channel(image, "alpha", quantity)[..., None]
    if quantity == "opacity":
        return Image(jnp.repeat(alpha, 3, axis=2))
    if quantity == "normals":
        return Image(_on_white(0.5 * _channel(image, "normal", quantity) + 0.5, alpha))
    if quantity == "albedo":
        return Image(_on_white(_channel(image, "albedo", quantity), alpha), space=image.space)
    if quantity == "surfaces":
        return Image(_on_white(_colors_of_numbers(_channel(image, "surface", quantity)), alpha))
    if quantity in ("uv", "positions"):
        # Their fractional parts: what they show repeats with every unit.
        values = _channel(image, "uv" if quantity == "uv" else "position", quantity)
        parts = np.pad(values - np.floor(values), ((0, 0), (0, 0), (0, 3 - values.shape[2])))
        return Image(_on_white(parts, alpha))
    # The nearest depth has the map's last colour, the farthest its first.
    near, far = depths
    depth = _channel(image, "depth" if quantity == "depth" else "median_depth", quantity)
    values = (far - depth) / max(far - near, 1e-12)
    return Image(_on_white(color_map(values, colors) / np.float32(255), alpha))


# The golden ratio: hues in such steps are far from those of the numbers before.
_STEP = (5**0.5 - 1) / 2


def _colors_of_numbers(numbers: np.ndarray) -> np.ndarray:
    """Returns a colour for every number, unlike those of the next ones; white below zero."""
    # Red, green and blue are a third of the circle of hues apart.
    hues = _STEP * numbers[..., None] + np.array([0, 1 / 3, 2 / 3])
    colors = 0.55 + 0.4 * np.cos(2 * np.pi * hues)
    return np.where(numbers[..., None] < 0, 1.0, colors).astype(np.float32)


def depth_limits(images: Sequence[Image]) -> tuple[float, float]:
    """Finds the depths between which things lie, but for a hundredth of them at either end."""
    depths = np.concatenate([np.ravel(_channel(image, "depth", "depth")) for image in images])
    alphas = np.concatenate([np.ravel(_channel(image, "alpha", "depth")) for image in images])
    # Pixels that are less than half opaque do not count, unless all are.
    solid = depths[alphas >= 0.5]
    limits = np.percentile(solid if solid.size else depths, [_OUTLIERS, 100 - _OUTLIERS])
    return float(limits[0]), float(limits[1])


def _channel(image: Image, name: str, quantity: str) -> np.ndarray:
    value = getattr(image, name)
    if value is None:
        raise ValueError(f"the picture has no `{name}`, so its {quantity} cannot be shown.")
    return np.asarray(value)


def _on_white(rgb: np.ndarray, alpha: np.ndarray) -> jnp.ndarray:
    # alpha rgb + (1 - alpha) white
    return jnp.asarray(rgb * alpha + 1 - alpha)
