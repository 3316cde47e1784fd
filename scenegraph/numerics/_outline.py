"""Light from polygons: the integral of directions over what is above a surface."""

import jax
import jax.numpy as jnp

from .._typing import Array, Float, Vector
from ._products import matmul
from ._safe import dot, safe_norm, safe_normalise


def polygon_irradiance(normal: Vector, corners: Float[Array, "corners 3"]) -> Vector:
    """Computes the irradiance vector of a polygon of radiance one, above a surface.

    It is the integral of the direction over the solid angle of the part above the surface: the
    surface receives its component along the normal, and its direction is the mean one of the light.

    **Arguments:**

    - `normal`: the surface's unit normal.
    - `corners`: the corners of a convex polygon relative to the point that is lit,
      counterclockwise as seen from there, of any length; they may repeat.

    **Returns:**

    The vector; zero for a polygon that is seen from the back, or lies below the surface.

    **Source:** Arvo 1994, "The Irradiance Jacobian for Partially Occluded Polyhedral Sources",
    equation 3 (Lambert's formula).

    Example: a square twice as high above a floor as it is wide.

    ```python
    square = jnp.array([[1.0, 1, 4], [1, -1, 4], [-1, -1, 4], [-1, 1, 4]])
    received = sg.numerics.polygon_irradiance(jnp.array([0.0, 0.0, 1.0]), square)[2]
    ```
    """
    corners = jax.vmap(safe_normalise)(corners)
    heights = matmul(corners, normal)
    following, above = jnp.roll(corners, -1, axis=0), heights >= 0
    next_heights, next_above = jnp.roll(heights, -1), jnp.roll(above, -1)
    # An edge from height a to b meets the horizon at the part a / (a - b) of its way.
    crosses = above != next_above
    fall = jnp.where(crosses, heights - next_heights, 1)
    meeting = corners + (heights / fall)[:, None] * (following - corners)
    start = jnp.where(above[:, None], corners, meeting)
    end = jnp.where(next_above[:, None], following, meeting)
    edges = jax.vmap(_edge)(start, end)
    total = jnp.sum(jnp.where((above | next_above)[:, None], edges, 0), axis=0)
    # What is cut off is closed along the horizon, from where the outline sets to where it rises.
    pick = lambda chosen: jnp.sum(jnp.where(chosen[:, None], meeting, 0), axis=0)
    closing = _edge(pick(above & ~next_above), pick(~above & next_above))
    total = total + jnp.where(jnp.any(crosses), closing, 0)
    # A polygon that is seen from the back is no source.
    return jnp.where(dot(total, normal) > 0, total, 0)


def _edge(start: Vector, end: Vector) -> Vector:
    """Returns the term of one edge: half its angle, along the normal of its plane."""
    # -angle / 2 (a x b) / |a x b|, with the angle atan2(|a x b|, a . b)
    across, along = jnp.cross(end, start), dot(start, end)
    sine = safe_norm(across)
    is_edge = sine > 0
    angle = jnp.arctan2(jnp.where(is_edge, sine, 0), jnp.where(is_edge, along, 1))
    return angle / jnp.where(is_edge, sine, 1) * across / 2
