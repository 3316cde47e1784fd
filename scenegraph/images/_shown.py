"""Everything that a picture tells, as something to look at."""

from collections.abc import Sequence
from typing import Literal

import jax.numpy as jnp
import numpy as np

from ._color_maps import color_map
from ._image import Image


Shown = Literal["rgb", "depth", "median-depth", "opacity", "normals"]
# Of the depths in a film, so many in a hundred are off the scale at either end.
_OUTLIERS = 1.0


def shown_as(
    image: Image,
    what: Shown,
    *,
    depths: tuple[float, float] = (0.0, 1.0),
    colors: str = "turbo",
) -> Image:
    """One of the things that a picture tells, as a picture.

    - `rgb`: the picture itself.
    - `depth`, `median-depth`: near things in the last colour of a map, far ones in its first.
    - `opacity`: white where nothing shines through.
    - `normals`: red, green and blue are the world's x, y and z: `(normal + 1) / 2`.

    Depths and normals fade to white where the picture is not opaque.

    **Arguments:**

    - `image`: that has what is to be shown.
    - `what`: is to be shown.
    - `depths`: the depths that get the last and the first colour. Keyword only argument.
    - `colors`: the name of one of matplotlib's colour maps. Keyword only argument.

    **Returns:**

    A picture of the same size, to be written as it is.

    **Errors:**

    `ValueError` for what the picture does not have, and for an unknown colour map.
    """
    if what == "rgb":
        return image
    alpha = _part(image, "alpha", what)[..., None]
    if what == "opacity":
        return Image(jnp.repeat(alpha, 3, axis=2))
    if what == "normals":
        return Image(_on_white(0.5 * _part(image, "normal", what) + 0.5, alpha))
    near, far = depths
    depth = _part(image, "depth" if what == "depth" else "median_depth", what)
    values = (far - depth) / max(far - near, 1e-12)
    return Image(_on_white(color_map(values, colors) / np.float32(255), alpha))


def depth_limits(images: Sequence[Image]) -> tuple[float, float]:
    """Between which depths things lie, but for a hundredth of them at either end.

    **Arguments:**

    - `images`: with opacity and depth, such as the frames of a film.

    **Returns:**

    The limits; pixels that are less than half opaque do not count, unless all are.
    """
    depths = np.concatenate([np.ravel(_part(image, "depth", "depth")) for image in images])
    alphas = np.concatenate([np.ravel(_part(image, "alpha", "depth")) for image in images])
    solid = depths[alphas >= 0.5]
    limits = np.percentile(solid if solid.size else depths, [_OUTLIERS, 100 - _OUTLIERS])
    return float(limits[0]), float(limits[1])


def _part(image: Image, name: str, what: str) -> np.ndarray:
    value = getattr(image, name)
    if value is None:
        raise ValueError(f"the picture has no `{name}`, so its {what} cannot be shown.")
    return np.asarray(value)


def _on_white(rgb: np.ndarray, alpha: np.ndarray) -> jnp.ndarray:
    return jnp.asarray(rgb * alpha + 1 - alpha)
