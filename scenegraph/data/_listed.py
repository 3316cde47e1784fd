import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .._typing import Array, Bool, Int, RandomKey, Vector
from ..cameras import AbstractCamera, pixel_centres
from ._batches import AbstractPixelChoice
from ._views import Views


class Listed(AbstractPixelChoice):
    """Pixels from a list: where all that there is to learn lies."""

    indices: Int[Array, " candidates"]

    def __call__(self, views: Views, count: int, key: RandomKey) -> Int[Array, " rays"]:
        return self.indices[jax.random.randint(key, (count,), 0, self.indices.shape[0])]


def pixels_through(views: Views, lower: np.ndarray, upper: np.ndarray) -> Listed:
    """The pixels whose rays pass through a box; the others see nothing but background."""
    corners = jnp.asarray(lower, jnp.float32), jnp.asarray(upper, jnp.float32)
    found, start = [], 0
    for frame in range(views.frames):
        width, height = int(views.widths[frame]), int(views.heights[frame])
        meets = _meets(views.camera(frame), width, height, *corners)
        found.append(start + np.flatnonzero(np.asarray(meets)))
        start += width * height
    indices = np.concatenate(found)
    return Listed(jnp.asarray(indices if indices.size else np.arange(start), jnp.int32))


@eqx.filter_jit
def _meets(
    camera: AbstractCamera, width: int, height: int, lower: Vector, upper: Vector
) -> Bool[Array, " pixels"]:
    origins, directions = jax.vmap(camera.line)(pixel_centres(width, height))
    step = jnp.where(directions == 0, 1e-12, directions)
    first, second = (lower - origins) / step, (upper - origins) / step
    enters = jnp.max(jnp.minimum(first, second), axis=-1)
    return jnp.min(jnp.maximum(first, second), axis=-1) > jnp.maximum(enters, camera.near)
