"""Residuals of pictures, or of a function, a block of pixels at a time."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from .._typing import Array, Bool, Float, Int, PyTree, RandomKey
from ..data import RayBatches
from ..filters import filter_pixel, relative_place
from ..fitting import pixel_cones, scene_cameras
from ..flat import flatten
from ..images import SRGB
from ..integrators import AbstractIntegrator
from ..pixels import DrawnPixels, ScenePixels
from ..rendering import fold_keys, integrate_anyhow
from ..scene import find_filter


class Block(NamedTuple):
    """Residuals with their cameras' numbers; those that do not count are zero."""

    values: Float[Array, " residuals"]
    counts: Bool[Array, " residuals"]
    camera: Int[Array, " residuals"]
    # The number of pixels left out for want of samples or layers.
    left_out: Int[Array, ""]


class PictureResiduals(NamedTuple):
    """Differences of rendered and given colours: one a pixel and channel."""

    batches: RayBatches
    integrator: AbstractIntegrator
    key: RandomKey | None
    # The number of the camera of each picture, and the indices of the pixels to render.
    cameras: Int[Array, " frames"]
    pixels: Int[Array, " pixels"]
    # The iteration, on which the width of cones depends where there is annealing.
    step: Int[Array, ""]
    # The path of each picture's filter; none at all, or one a picture.
    filters: tuple[str, ...] = ()

    def blocks(self) -> Int[Array, "blocks rows"]:
        """Returns numbers of pixels, block by block; those after the last are padding."""
        size = self.batches.size
        # ceil(pixels / size) blocks of one size
        number = -(-self.pixels.size // size)
        return jnp.arange(number * size).reshape(number, size)

    def __call__(self, scene: PyTree, rows: Int[Array, " rows"]) -> Block:
        indices = self.pixels[jnp.minimum(rows, self.pixels.size - 1)]
        views = self.batches.views
        frame, place = views.locate(indices)
        values = jnp.asarray(views.pixels)[self._places(indices, frame, place)]
        drawn = DrawnPixels(frame, place, values)
        batch = self.batches.assemble(drawn, 0, self.step)
        flat, rays = flatten(scene), batch.rays
        if isinstance(rays, ScenePixels):
            rays = pixel_cones(rays, scene_cameras(rays, scene))
        # The same noise in all iterations: it depends on the pixel alone.
        keys = None if self.key is None else fold_keys(self.key, indices)
        radiance = integrate_anyhow(flat, rays, self.integrator, keys, batch.background)[-1]
        weight = jnp.where(rows < self.pixels.size, batch.lossmult, 0.0)
        missed = jnp.zeros(rows.shape, bool) if radiance.overflow is None else radiance.overflow > 0
        counts = jnp.repeat((weight > 0) & ~missed, 3)
        rgb = self._filtered(scene, radiance.rgb, frame, place)
        difference = (rgb - batch.rgb).reshape(-1)
        # r = sqrt(lossmult) (rgb - target), so that squares weigh by lossmult
        root = jnp.sqrt(jnp.where(counts, jnp.repeat(weight, 3), 1.0))
        values = jnp.where(counts, root * difference, 0.0)
        left_out = jnp.sum(missed & (weight > 0))
        return Block(values, counts, jnp.repeat(self.cameras[frame], 3), left_out)

    def _filtered(self, scene: PyTree, rgb: Array, frame: Array, place: Array) -> Array:
        if not self.filters:
            return rgb
        views, stated = self.batches.views, self.batches.space
        space = SRGB() if stated is None else stated
        filters = [find_filter(scene, path) for path in self.filters]
        stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *filters)
        sizes = jnp.stack([views.widths, views.heights], axis=-1)[frame]
        where = relative_place((place + 0.5).astype(rgb.dtype), sizes)

        def one(rgb: Array, frame: Array, where: Array) -> Array:
            return filter_pixel(jax.tree.map(lambda x: x[frame], stacked), rgb, where, space)

        return jax.vmap(one)(rgb, frame, where)

    def _places(self, indices: Array, frame: Array, place: Array) -> Array:
        views, annealing = self.batches.views, self.batches.annealing
        if annealing is None:
            return indices
        sizes = jnp.stack([views.widths, views.heights], axis=-1)[frame]
        return annealing.windows(views.starts()[frame], sizes, place)

    def at_step(self, step: int) -> "PictureResiduals":
        """Returns the residuals of an iteration."""
        return self._replace(step=jnp.asarray(step))

    def is_final(self) -> bool:
        """Returns true if later iterations have the same residuals."""
        annealing = self.batches.annealing
        return annealing is None or int(self.step) >= annealing.steps


class FunctionResiduals(NamedTuple):
    """The residuals that a function of the scene returns, in one block."""

    function: Callable[[Any], Any]

    def blocks(self) -> Int[Array, "blocks rows"]:
        """Returns one block."""
        return jnp.zeros((1, 1), int)

    def __call__(self, scene: PyTree, rows: Int[Array, " rows"]) -> Block:
        values = jnp.ravel(self.function(scene))
        everywhere = jnp.ones(values.shape, bool)
        return Block(values, everywhere, jnp.zeros(values.shape, int), jnp.zeros((), int))

    def at_step(self, step: int) -> "FunctionResiduals":
        """Returns the same residuals."""
        del step
        return self

    def is_final(self) -> bool:
        """Returns true: all iterations have the same residuals."""
        return True


Residuals = PictureResiduals | FunctionResiduals
