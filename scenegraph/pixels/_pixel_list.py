import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .._typing import Array, Bool, Int, RandomKey, Vector
from ..cameras import AbstractCamera, pixel_centres
from ..numerics import as_float_leaf
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
    corners = as_float_leaf(lower.astype(np.float32)), as_float_leaf(upper.astype(np.float32))
    sizes = np.stack([views.widths, views.heights], axis=-1).tolist()
    found, start, cameras = [], 0, on_host(known_cameras(views))
    for frame, (width, height) in enumerate(sizes):
        hits = _hits_box(take_camera(cameras, frame), width, height, *corners)
        found.append(start + np.flatnonzero(np.asarray(hits)))
        start += width * height
    indices = np.concatenate(found)
    if views.weights is not None:
        indices = indices[np.asarray(views.weights)[indices] > 0]
    listed = indices if indices.size else np.arange(start)
    return PixelList(jax.device_put(listed.astype(np.int32)))


def edge_pixels(views: Views, choice: AbstractPixelChoice, share: float) -> PixelList:
    """Lists that share of each picture's pixels where it changes most, among those of a list."""
    listed = np.arange(int(views.pixels.shape[0]))
    if isinstance(choice, PixelList):
        listed = np.sort(np.asarray(choice.indices))
    if views.weights is not None:
        listed = listed[np.asarray(views.weights)[listed] > 0]
    found = []
    for frame in range(views.frames):
        part = views.part(frame)
        own = listed[np.searchsorted(listed, part.start) : np.searchsorted(listed, part.stop)]
        slopes = _slopes(views, frame)[own - part.start]
        found.append(own[slopes >= np.quantile(slopes, 1 - share)] if own.size else own)
    indices = np.concatenate(found)
    return PixelList(jnp.asarray((indices if indices.size else listed).astype(np.int32)))


def _slopes(views: Views, frame: int) -> np.ndarray:
    """Computes the length of the gradient of a picture's brightness, pixel by pixel."""
    brightness = np.asarray(views.image(frame).rgb, np.float32).mean(axis=-1)
    # Differences need two pixels either way; a line of pixels has a gradient along it alone.
    along = [np.gradient(brightness, axis=i) for i in (0, 1) if brightness.shape[i] > 1]
    return np.sqrt(sum((x**2 for x in along), np.zeros_like(brightness))).ravel()


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
