import difflib

import numpy as np


def check_color_map(name: str) -> None:
    """Refuses a name that none of matplotlib's colour maps has."""
    # Imported here and not above: a plain import of the library does not load it.
    from matplotlib import colormaps

    if name not in colormaps:
        near = difflib.get_close_matches(name, colormaps, n=1, cutoff=0.0)
        raise ValueError(f"there is no colour map {name!r}; did you mean {near[0]!r}?")


def color_map(values: np.ndarray, name: str) -> np.ndarray:
    """Colours numbers from 0 to 1 by one of matplotlib's maps, as uint8; grey where not finite."""
    from matplotlib import colormaps

    check_color_map(name)
    numbers = np.ma.masked_invalid(np.clip(np.asarray(values, np.float64), 0.0, 1.0))
    colors = colormaps[name].with_extremes(bad="grey")(numbers)[..., :3]
    return np.round(255 * colors).astype(np.uint8)
