"""A fingerprint of pictures and cameras, by which a run knows its data wherever they are."""

import hashlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from ..data import Views
from ..io import MappedArray
from ..pixels import frame_lines, known_cameras


# The number of pixels, spread over all pictures, that are compared.
_PIXELS = 4096
# Numbers may differ by so much, because other machines round, and decode JPEG, otherwise.
_CAMERAS, _COLORS = 1e-3, 3e-3


def take_fingerprint(views: Views) -> dict[str, Any]:
    """Returns names, sizes, cameras and a few pixels of one split, condensed for JSON."""
    sizes = np.stack([views.widths, views.heights], axis=-1).tolist()
    listed = "\n".join(f"{name} {size}" for name, size in zip(views.names, sizes, strict=True))
    return {
        "pictures": views.frames,
        "names": hashlib.sha256(listed.encode()).hexdigest()[:16],
        "cameras": _condense(_corner_lines(views)),
        "colors": _condense(_some_pixels(views)),
    }


def find_difference(known: Mapping[str, Any], views: Views) -> str | None:
    """Says in which way pictures are not those of a fingerprint; `None` if they are."""
    there = take_fingerprint(views)
    if there["pictures"] != known.get("pictures"):
        return f"{there['pictures']} pictures instead of {known.get('pictures')}"
    if there["names"] != known.get("names"):
        return "pictures of other names or sizes"
    for name, spread in (("cameras", _CAMERAS), ("colors", _COLORS)):
        one, other = (np.asarray(x.get(name) or [], float) for x in (known, there))
        if one.shape != other.shape or not np.allclose(one, other, spread, spread):
            return f"pictures with other {'cameras' if name == 'cameras' else 'colours'}"
    return None


def _some_pixels(views: Views) -> np.ndarray:
    """Returns pixels spread over all pictures, as numbers between 0 and 1."""
    count = len(views.pixels)
    rows = np.linspace(0, count - 1, min(count, _PIXELS)).astype(np.int64)
    pixels = views.pixels
    found = pixels.take(rows) if isinstance(pixels, MappedArray) else np.asarray(pixels)[rows]
    return found / (255.0 if found.dtype == np.uint8 else 1.0)


def _corner_lines(views: Views) -> np.ndarray:
    """Returns origins and unit directions of the rays through two corners of every picture."""

    cameras, frames = known_cameras(views), views.frames
    width = float(cameras.width)
    corners = [np.tile(corner, (frames, 1)) for corner in ([0.0, 0.0], [width, 0.0])]
    lines = [frame_lines(cameras, corner) for corner in corners]
    return np.concatenate([part for line in lines for part in line], axis=-1)


def _condense(rows: np.ndarray) -> list[float]:
    """Returns two means over rows: the plain one, and one that depends on their order."""
    rows = rows.astype(np.float64)
    waves = np.cos(1.7 * np.arange(len(rows)))[:, None]
    means = np.concatenate([rows.mean(axis=0), (waves * rows).mean(axis=0)])
    return [round(float(x), 6) for x in means]
