import numpy as np

from ..io import check_color_map


def color_map(values: np.ndarray, name: str) -> np.ndarray:
    """Colours numbers from 0 to 1 by one of matplotlib's maps, as uint8; grey where not finite."""
    from matplotlib import colormaps

    check_color_map(name)
    numbers = np.ma.masked_invalid(np.clip(np.asarray(values, np.float64), 0.0, 1.0))
    colors = colormaps[name].with_extremes(bad="grey")(numbers)[..., :3]
    return np.round(255 * colors).astype(np.uint8)
