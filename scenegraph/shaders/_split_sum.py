"""Reflection of light from all around: the lobe's mean light, times the part that it reflects."""

import functools
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from .._typing import Array, Color, Float, Scalar
from ..numerics import between_levels, clip_within
from ..rays import Irradiance


# A smoother surface has highlights too bright and too small for single precision.
SMOOTHEST = 1e-3
# The table's points along each axis, and the parts of the quadrature behind each of them.
_POINTS, _PARTS = 32, 32


class SplitLights(NamedTuple):
    """Lights with a direction each, by what makes their highlights, without ambient light."""

    sharp: Irradiance  # the direction itself
    lamps: Irradiance  # an outline
    soft: Irradiance  # a panorama


def split_lights(lights: Irradiance) -> SplitLights:
    """Divides lights by what makes their highlights."""
    last = lights.direction.shape[0] - lights.soft
    first = last - (0 if lights.lamps is None else lights.lamps.radiance.shape[-2])
    dark = jnp.zeros_like(lights.ambient)
    part = lambda some: Irradiance(lights.direction[some], lights.irradiance[some], dark)
    return SplitLights(part(slice(first)), part(slice(first, last)), part(slice(last, None)))


def mirrored_light(lights: Irradiance, roughness: Scalar) -> Color:
    """Returns the mean light that a roughness reflects to the eye: ambient, and of panoramas."""
    if lights.glossy is None:
        return lights.ambient
    return lights.ambient + between_levels(lights.glossy, roughness)


def reflected_parts(roughness: Scalar, seen: Scalar) -> tuple[Scalar, Scalar]:
    """Returns `A` and `B`: GGX reflects the part `f0 A + B` of even light; `seen` is `n.v`."""
    # docs/surfaces.md, "Panoramas in highlights": A and B of f0 A + B.
    head_on, grazing = look_up_lobe(_table(), roughness, seen)
    return head_on, grazing


def mean_reflected_parts(roughness: Scalar) -> tuple[Scalar, Scalar]:
    """Returns the means of `A` and `B` over even light: `2 int_0^1 A(c) c dc`."""
    row, right = _between(roughness, _POINTS)
    ends = jnp.asarray(_mean_table(), roughness.dtype)[row + jnp.array([0, 1])]
    head_on, grazing = (1 - right) * ends[0] + right * ends[1]
    return head_on, grazing


@functools.lru_cache(maxsize=1)
def _mean_table() -> Float[np.ndarray, "roughness 2"]:
    """Computes the means of the table's columns."""
    # With c = x^2: 2 int A(x^2) x^2 2 x dx, of which A is linear between the table's points.
    x = np.linspace(0, 1, 32 * (_POINTS - 1) + 1)
    fine = np.stack([[np.interp(x, x[::32], r[:, i]) for i in (0, 1)] for r in _table()])
    return np.asarray(np.trapezoid(4 * x**3 * fine, x, axis=-1))


def look_up_lobe(
    table: Float[np.ndarray, "roughness seen numbers"], roughness: Scalar, seen: Scalar
) -> Float[Array, " numbers"]:
    """Returns numbers of a lobe from a table, even in roughness and in `sqrt(n.v)`; bilinear."""
    row, right = _between(roughness, table.shape[0])
    column, down = _between(jnp.sqrt(seen), table.shape[1])
    numbers = jnp.asarray(table, seen.dtype)
    corners = numbers[(row + jnp.array([[0], [1]])), (column + jnp.array([0, 1]))]
    weights = jnp.stack([1 - right, right])[:, None] * jnp.stack([1 - down, down])
    return jnp.sum(weights[..., None] * corners, axis=(0, 1))


def _between(part: Scalar, points: int) -> tuple[Array, Scalar]:
    """Returns the table's point below a part of an axis, and the rest up to it."""
    at = clip_within(part, 0, 1) * (points - 1)
    low = jnp.clip(jnp.floor(at), 0, points - 2)
    return low.astype(int), at - low


@functools.lru_cache(maxsize=1)
def _table() -> Float[np.ndarray, "roughness seen 2"]:
    """Computes `A` and `B` by quadrature over the facets that the eye sees.

    **Source:** Karis 2013, "Real Shading in Unreal Engine 4" (the two terms); Heitz 2018, "Sampling
    the GGX Distribution of Visible Normals".
    """
    axis = np.linspace(0, 1, _POINTS)
    seen = np.maximum(axis**2, 1e-4)
    return np.stack([_terms(max(x**2, SMOOTHEST), seen) for x in axis])


def _terms(alpha: float, seen: np.ndarray) -> np.ndarray:
    """Returns `A` and `B` for one roughness."""
    half, weights = visible_facets(alpha, seen[:, None])
    side = np.sqrt(1 - seen**2)[:, None]
    # v.h with v = (side, 0, seen), and n.l of the mirrored light l = 2 (v.h) h - v.
    meets = side * half[0] + seen[:, None] * half[2]
    lit = 2 * meets * half[2] - seen[:, None]
    spread = lambda x: np.sqrt(alpha**2 + (1 - alpha**2) * x**2)
    up = np.maximum(lit, 1e-9)
    # G / G1(v) with G = 2 n.l n.v / (n.l s(n.v) + n.v s(n.l)) and G1 = 2 n.v / (n.v + s(n.v)).
    view = spread(seen[:, None])
    share = up * (seen[:, None] + view) / (up * view + seen[:, None] * spread(up))
    share = np.where(lit > 0, share, 0) * weights
    # F(f0, c) = f0 (1 - (1 - c)^5) + (1 - c)^5: the factor of f0 is A, the rest is B.
    grazing = np.clip(1 - meets, 0, 1) ** 5
    return np.stack([np.sum(share * x, axis=1) for x in (1 - grazing, grazing)], axis=-1)


def visible_facets(
    alpha: float, seen: np.ndarray, parts: int = _PARTS
) -> tuple[np.ndarray, np.ndarray]:
    """Returns normals of facets (`3 seen parts`) that stand for parts of what the eye sees."""
    part = (np.arange(parts) + 0.5) / parts
    # Finer towards the disk's rim, where steep facets are; half of it, by symmetry.
    radius, angle = np.meshgrid(np.sqrt(1 - (1 - part) ** 2), np.pi * (part - 0.5))
    # With r^2 = 1 - (1 - p)^2, a step dp stands for the part d(r^2) = 2 (1 - p) dp of the disk.
    weights = np.broadcast_to(2 * (1 - part), radius.shape).ravel() / parts**2
    across, along = (radius * np.cos(angle)).ravel(), (radius * np.sin(angle)).ravel()
    # The view stretched by alpha: facets are then those of a half sphere, seen from there.
    x, z = alpha * np.sqrt(1 - seen**2), seen
    x, z = x / np.hypot(x, z), z / np.hypot(x, z)
    # The disk is bent to the outline of the half sphere: with s = (1 + z) / 2,
    # along' = (1 - s) sqrt(1 - across^2) + s along.
    along = (1 - z) / 2 * np.sqrt(1 - across**2) + (1 + z) / 2 * along
    out = np.sqrt(np.maximum(1 - across**2 - along**2, 0))
    # With w = (x, 0, z): h = across y + along (-z, 0, x) + out w, stretched back by alpha across n.
    half = np.stack(
        [
            alpha * (x * out - z * along),
            alpha * (across + 0 * x),
            np.maximum(x * along + z * out, 0),
        ]
    )
    return half / np.linalg.norm(half, axis=0), weights
