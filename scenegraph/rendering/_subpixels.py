"""Supersampling: every pixel split into smaller cones, and their mean."""

import math
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Key

from .._typing import Array, Float, Int, RandomKey
from ..cameras import AbstractCamera
from ..compositing import mean_value, strongest_surface
from ..numerics import as_type, common_type, safe_divide, safe_normalise
from ..rays import Ray, widen
from ..rows import map_rows
from ._rays import fold_keys


# The outputs of some pixels, the numbers that overflowed, and the numbers requested.
PixelValues = tuple[dict[str, Array], Array | None, Array | None]


class Subpixels(NamedTuple):
    """Pixels' indices, and the numbers of their parts, row by row; `None` for whole pixels."""

    pixel: Int[Array, "*rays"]
    part: Int[Array, "*rays"] | None


def parts_along_side(samples_per_pixel: int) -> int:
    """Returns the square root of the number of parts; refuses what is not a square."""
    side = math.isqrt(max(samples_per_pixel, 0))
    if side < 1 or side * side != samples_per_pixel:
        near = [n * n for n in (side, side + 1) if n > 0]
        raise ValueError(
            f"`samples_per_pixel` must be the square of a whole number, because a pixel is split "
            f"into rows and columns; got {samples_per_pixel}. The nearest: "
            f"{' and '.join(map(str, near))}."
        )
    return side


def split_pixels(indices: Int[Array, " pixels"], side: int) -> Subpixels:
    """Lists the parts of pixels, those of one pixel in a row."""
    if side == 1:
        return Subpixels(indices, None)
    parts = side * side
    return Subpixels(jnp.repeat(indices, parts), jnp.tile(jnp.arange(parts), indices.shape[0]))


def subpixel_rays(camera: AbstractCamera, rows: Subpixels, side: int) -> Ray:
    """Computes the cones through the parts of pixels."""
    return map_rows(partial(_cone, side=side), camera, rows)


def _cone(camera: AbstractCamera, row: Subpixels, side: int) -> Ray:
    y, x = jnp.divmod(row.pixel, camera.width)
    dtype = common_type(camera)
    centre: Float[Array, "2"] = jnp.stack([x, y]).astype(dtype) + 0.5
    # Poses compute in the default type, whatever the type of their leaves.
    if row.part is None:
        return as_type(camera.ray(centre), dtype)
    # Part (i, j) of n x n has its centre at the pixel's + ((j, i) + 1/2) / n - 1/2, and a footprint
    # of 1 / n of the pixel's.
    down, across = jnp.divmod(row.part, side)
    offset = (jnp.stack([across, down]).astype(dtype) + 0.5) / side - 0.5
    return widen(as_type(camera.ray(centre + offset), dtype), 1 / side)


def subpixel_keys(key: RandomKey | None, rows: Subpixels) -> Key[Array, " rays"] | None:
    """Returns a key for every cone: folded by the pixel's index, then by the part's."""
    if key is None:
        return None
    keys = fold_keys(key, rows.pixel)
    return keys if rows.part is None else jax.vmap(jax.random.fold_in)(keys, rows.part)


def pixels_of_parts(parts: PixelValues, side: int) -> PixelValues:
    """Returns pixels from their parts: means, what is missing of any part, and the mean request."""
    if side == 1:
        return parts
    fields, overflow, requested = jax.tree.map(
        lambda x: x.reshape(-1, side * side, *x.shape[1:]), parts
    )
    # A pixel misses what any of its parts misses.
    missed = None if overflow is None else jnp.sum(overflow, axis=1)
    return _means(fields), missed, None if requested is None else jnp.mean(requested, axis=1)


def _means(fields: dict[str, Array]) -> dict[str, Array]:
    """Computes the means over an axis of parts; all but colours are weighted by opacity."""
    alpha = fields["alpha"]
    mean = partial(jax.vmap(mean_value), alpha)
    means = {
        # Colours are premultiplied, and over the background: so is their mean.
        "rgb": lambda x: jnp.mean(x, axis=1),
        "alpha": lambda x: jnp.mean(x, axis=1),
        "depth": lambda x: _weighted_mean(alpha, x),
        "normal": lambda x: safe_normalise(jnp.sum(alpha[..., None] * x, axis=1)),
        "median_depth": lambda x: jax.vmap(_weighted_median)(alpha, x),
        "albedo": mean,
        "position": mean,
        "surface": lambda x: jax.vmap(_main_surface)(alpha, x),
        "uv": lambda x: jax.vmap(_middle_uv)(alpha, fields["surface"], x),
        # Of independent parts, the variance of the mean is that of the sum over n^2.
        "variance": lambda x: jnp.mean(x, axis=1) / x.shape[1],
    }
    return {name: means[name](x) for name, x in fields.items()}


def outputs_of_parts(outputs: tuple[str, ...]) -> tuple[str, ...]:
    """Returns the outputs of parts that those of pixels need."""
    more = "uv" in outputs and "surface" not in outputs
    return (*outputs, "surface") if more else outputs


def _main_surface(alpha: Float[Array, " parts"], surface: Int[Array, " parts"]) -> Int[Array, ""]:
    """Returns the surface that most parts show, weighted by opacity; -1 for none."""
    return strongest_surface(jnp.where(surface < 0, 0, alpha), surface)[0]


def _middle_uv(
    alpha: Float[Array, " parts"], surface: Int[Array, " parts"], uv: Float[Array, "parts 2"]
) -> Float[Array, "2"]:
    """Returns the uv of the part nearest to the pixel's middle that shows the pixel's surface.

    A mean over a seam would be on neither side of it.
    """
    side = math.isqrt(surface.shape[0])
    away = np.abs(np.arange(side) - (side - 1) / 2)
    order = np.argsort(np.hypot(away[:, None], away).ravel(), kind="stable")
    shown = surface[order] == _main_surface(alpha, surface)
    return uv[order][jnp.argmax(shown)]


def _weighted_mean(
    alpha: Float[Array, "pixels parts"], depth: Float[Array, "pixels parts"]
) -> Float[Array, " pixels"]:
    """Computes `sum(alpha t) / sum(alpha)`; the mean where nothing is, which is the far end."""
    opacity = jnp.sum(alpha, axis=1)
    mean = safe_divide(jnp.sum(alpha * depth, axis=1), opacity)
    return jnp.where(opacity > 0, mean, jnp.mean(depth, axis=1))


def _weighted_median(
    alpha: Float[Array, " parts"], depth: Float[Array, " parts"]
) -> Float[Array, ""]:
    """Finds the depth of the part at which half of all opacity is reached, from near to far."""
    # The first part, from near to far, with sum_{j<=i} alpha_j >= half of all.
    order = jnp.argsort(depth)
    opacity = jnp.cumsum(alpha[order])
    reached = jnp.argmax(opacity >= opacity[-1] / 2)
    return jnp.where(opacity[-1] > 0, depth[order][reached], jnp.mean(depth))
