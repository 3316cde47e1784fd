"""The origin of captures far from that of their world, such as those in geographic coordinates."""

import numpy as np

from .._typing import Float


# Single precision resolves places to 6e-8 of their distance from the origin. If that is more than
# so many times the cameras' distance from each other, the origin is moved.
_FAR = 100.0


def choose_origin(places: Float[np.ndarray, "cameras 3"]) -> Float[np.ndarray, "3"]:
    """Returns the place that becomes the origin: zero, or near cameras that are far from there."""
    middle = np.median(places, axis=0)
    apart = float(np.max(np.linalg.norm(places - middle, axis=1)))
    if not apart or np.linalg.norm(middle) <= _FAR * apart:
        return np.zeros(3)
    # A multiple of a power of two is the same number in every file.
    unit = 2.0 ** np.floor(np.log2(apart))
    return np.round(middle / unit) * unit


def note_origin(where: object, origin: np.ndarray) -> tuple[str, ...]:
    """Says that the origin is moved."""
    if not np.any(origin):
        return ()
    place = ", ".join(f"{x:.12g}" for x in origin)
    return (
        f"{where}: cameras are far from the origin, so that places are counted from ({place}); "
        "files that are written for other programs have those of the data",
    )
