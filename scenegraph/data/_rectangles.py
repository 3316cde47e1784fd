import itertools

import jax
import jax.numpy as jnp
import numpy as np

from .._typing import Array, Int, RandomKey
from ._batches import AbstractPixelChoice
from ._views import Views


class Rectangles(AbstractPixelChoice):
    """Pixels from a rectangle of every picture: where all that there is to learn lies.

    **Arguments:**

    - `lower`, `upper`: corners `(column, row)` of each picture's rectangle, the upper excluded.
    """

    lower: Int[Array, "frames 2"]
    upper: Int[Array, "frames 2"]

    def __call__(self, views: Views, count: int, key: RandomKey) -> Int[Array, " rays"]:
        sizes = self.upper - self.lower
        ends = jnp.cumsum(sizes[:, 0] * sizes[:, 1])
        drawn = jax.random.randint(key, (count,), 0, ends[-1])
        frame = jnp.searchsorted(ends, drawn, side="right")
        left = drawn - (ends - sizes[:, 0] * sizes[:, 1])[frame]
        row, column = jnp.divmod(left, sizes[frame, 0])
        row, column = row + self.lower[frame, 1], column + self.lower[frame, 0]
        return views.starts()[frame] + row * views.widths[frame] + column


def rectangles_about(views: Views, lower: np.ndarray, upper: np.ndarray) -> Rectangles:
    """The part of every picture in which a box appears.

    **Arguments:**

    - `views`: the pictures.
    - `lower`, `upper`: corners of the box, in the world.

    **Returns:**

    The choice of pixels; whole pictures where a camera is inside or beside the box.
    """
    corners = jnp.asarray(list(itertools.product(*zip(lower, upper, strict=True))), jnp.float32)

    @jax.jit
    def project(frames: Int[Array, " frames"]) -> Array:
        return jax.vmap(lambda frame: jax.vmap(views.camera(frame).project)(corners))(frames)

    pixels = np.asarray(project(jnp.arange(views.frames)))
    sizes = np.stack([views.widths, views.heights], axis=-1)
    low = np.clip(np.floor(pixels.min(axis=1)), 0, sizes)
    high = np.clip(np.ceil(pixels.max(axis=1)), 0, sizes)
    whole = ~np.isfinite(pixels).all(axis=(1, 2)) | (high <= low).any(axis=1)
    low, high = np.where(whole[:, None], 0, low), np.where(whole[:, None], sizes, high)
    return Rectangles(jnp.asarray(low, jnp.int32), jnp.asarray(high, jnp.int32))
