"""Glass: what a surface between two media reflects, and what passes it."""

import functools

import jax.numpy as jnp
import numpy as np

from .._typing import Float, Scalar, Vector
from ..numerics import clip_within, dot, safe_normalise
from ._split_sum import SMOOTHEST, visible_facets


# Quotients of indices of refraction in the table are between 1 / 3 and 3.
_MOST = 3.0
_RATIOS, _POINTS = 33, 24
# Up to the first roughness, the reflected part is that of the normal itself; above the second one,
# it is the mean over facets.
_SMOOTH, _ROUGH = 0.1, 0.25
# The least square of the cosine behind the surface: at zero, its root has no derivative.
_LEAST_SQUARE = 1e-7


def fresnel(cosine: Scalar, ratio: Scalar) -> Scalar:
    """Returns the part of unpolarised light that is reflected; `ratio` is `n_behind / n_before`.

    **Source:** Fresnel's equations; Snell's law.
    """
    # t = sqrt(1 - (1 - c^2) / r^2), and the mean of ((r c - t) / (r c + t))^2 and
    # ((c - r t) / (c + r t))^2
    square = 1 - (1 - cosine**2) / ratio**2
    passes = square > _LEAST_SQUARE
    behind = jnp.sqrt(jnp.where(passes, square, 1))
    along = (ratio * cosine - behind) / (ratio * cosine + behind)
    across = (cosine - ratio * behind) / (cosine + ratio * behind)
    return jnp.where(passes, (along**2 + across**2) / 2, 1)


def refract(eye: Vector, facet: Vector, ratio: Scalar) -> Vector:
    """Returns the direction in which light from the eye goes on behind a facet that it hits."""
    # (c / r - t) h - v / r; where all is reflected, along the facet.
    cosine = dot(eye, facet)
    square = 1 - (1 - cosine**2) / ratio**2
    passes = square > _LEAST_SQUARE
    behind = jnp.where(passes, jnp.sqrt(jnp.where(passes, square, 1)), 0)
    return safe_normalise((cosine / ratio - behind) * facet - eye / ratio)


def glass_parts(ratio: Scalar, roughness: Scalar, seen: Scalar) -> tuple[Scalar, Scalar]:
    """Returns the part that is reflected, of all light, and how much of it a second facet loses.

    The second number is the sum of what the first facet reflects and what passes it, and of both
    what no other facet hides.
    """
    table = jnp.asarray(_table(), seen.dtype)
    place = clip_within((jnp.log(ratio) / np.log(_MOST) + 1) / 2, 0, 1) * (_RATIOS - 1)
    places = place, *(clip_within(x, 0, 1) * (_POINTS - 1) for x in (roughness, jnp.sqrt(seen)))
    low = [jnp.clip(jnp.floor(x), 0, n - 2) for x, n in zip(places, table.shape[:3], strict=True)]
    i, j, k = (x.astype(int) for x in low)
    a, b, c = (x - y for x, y in zip(places, low, strict=True))
    step = jnp.array([0, 1])
    corners = table[(i + step)[:, None, None], (j + step)[:, None], k + step]
    weigh = lambda part: jnp.stack([1 - part, part])
    weights = weigh(a)[:, None, None] * weigh(b)[:, None] * weigh(c)
    reflected, total = jnp.sum(weights[..., None] * corners, axis=(0, 1, 2))
    # 3 s^2 - 2 s^3 between the two roughnesses.
    rough = jnp.clip((roughness - _SMOOTH) / (_ROUGH - _SMOOTH), 0, 1)
    rough = rough**2 * (3 - 2 * rough)
    return rough * reflected / total + (1 - rough) * fresnel(seen, ratio), total


@functools.lru_cache(maxsize=1)
def _table() -> Float[np.ndarray, "ratio roughness seen 2"]:
    """Computes what facets reflect, and what they reflect or let pass, by quadrature."""
    ratios = _MOST ** np.linspace(-1, 1, _RATIOS)
    axis = np.linspace(0, 1, _POINTS)
    alphas, seen = np.maximum(axis**2, SMOOTHEST), np.maximum(axis**2, 1e-4)
    return np.stack([[_parts(r, a, seen) for a in alphas] for r in ratios]).astype(np.float32)


def _parts(ratio: float, alpha: float, seen: np.ndarray) -> np.ndarray:
    """Returns both numbers of the table for one quotient of indices and one roughness."""
    half, weights = visible_facets(alpha, seen[:, None], 16)
    meets = np.sqrt(1 - seen**2)[:, None] * half[0] + seen[:, None] * half[2]
    square = 1 - (1 - meets**2) / ratio**2
    passes = square > 0
    behind = np.sqrt(np.where(passes, square, 1))
    along = (ratio * meets - behind) / (ratio * meets + behind)
    across = (meets - ratio * behind) / (meets + ratio * behind)
    mirrored = np.where(passes, (along**2 + across**2) / 2, 1)
    spread = lambda x: np.sqrt(alpha**2 + (1 - alpha**2) * x**2)
    view = spread(seen[:, None])
    # What is reflected: G / G1(v), with heights of both directions together.
    lit = np.maximum(2 * meets * half[2] - seen[:, None], 0)
    up = np.maximum(lit, 1e-9)
    share = up * (seen[:, None] + view) / (up * view + seen[:, None] * spread(up))
    reflected = np.sum(np.where(lit > 0, mirrored * share, 0) * weights, axis=1)
    # What passes: G1(l) = 2 n.l / (n.l + s(n.l)) with -n.l = v_z / r - (c / r - t) h_z.
    down = np.maximum(seen[:, None] / ratio - (meets / ratio - behind) * half[2], 0)
    share = 2 * down / np.maximum(down + spread(down), 1e-9)
    passed = np.sum(np.where(passes, (1 - mirrored) * share, 0) * weights, axis=1)
    return np.stack([reflected, reflected + passed], axis=-1)
