import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .._typing import Array, Bool, Int, RandomKey, Vector
from ..cameras import AbstractCamera, pixel_centres
from ._batches import AbstractPixelChoice
from ._lines import known_cameras, on_host, take_camera
from ._views import Views


class PixelList(AbstractPixelChoice):
    """Pixels from a list of at least one index, such as of those that see the scene."""

    indices: Int[Array, " candidates"]

    def __call__(self, views: Views, count: int, key: RandomKey) -> Int[Array, " rays"]:
        return self.indices[jax.random.randint(key, (count,), 0, self.indices.shape[0])]


def pixels_through(views: Views, lower: np.ndarray, upper: np.ndarray) -> PixelList:
    """Lists the pixels that count and whose rays pass through a box; all pixels if no ray does."""
    corners = jnp.asarray(lower, jnp.float32), jnp.asarray(upper, jnp.float32)
    sizes = np.stack([views.widths, views.heights], axis=-1).tolist()
    found, start, cameras = [], 0, on_host(known_cameras(views))
    for frame, (width, height) in enumerate(sizes):
        hits = _hits_box(take_camera(cameras, frame), width, height, *corners)
        found.append(start + np.flatnonzero(np.asarray(hits)))
        start += width * height
    indices = np.concatenate(found)
    if views.weights is not None:
        indices = indices[np.asarray(views.weights)[indices] > 0]
    return PixelList(jnp.asarray((indices if indices.size else np.arange(start)).astype(np.int32)))


@eqx.filter_jit
def _hits_box(
    camera: AbstractCamera, width: int, height: int, lower: Vector, upper: Vector
) -> Bool[Array, " pixels"]:
    # The slab test: a line is in the box from the last of the nearer crossings with its pairs of
    # faces to the first of the farther ones.
    origins, directions = jax.vmap(camera.line)(pixel_centres(width, height))
    step = jnp.where(directions == 0, 1e-12, directions)
    first, second = (lower - origins) / step, (upper - origins) / step
    enters = jnp.max(jnp.minimum(first, second), axis=-1)
    return jnp.min(jnp.maximum(first, second), axis=-1) > jnp.maximum(enters, camera.near)
