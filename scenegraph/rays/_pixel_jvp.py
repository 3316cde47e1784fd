from collections.abc import Callable

import jax

from .._typing import PyTree
from ._ray import Ray


def pixel_jvp(function: Callable, ray: Ray) -> tuple[PyTree, PyTree]:
    """Computes a function of a ray's line, and its derivatives by the pixel's coordinates.

    **Arguments:**

    - `function`: a function of origin and direction (`3` each) that returns a tree of arrays.
    - `ray`: one ray.

    **Returns:**

    `(values, derivatives)`, two trees of the same structure. Each array of derivatives has one more
    axis, the last, of length 2: the derivatives by the pixel's x and y.
    """
    return batched_jvp(function, (ray.origin, ray.direction), (ray.d_origin.T, ray.d_direction.T))


def batched_jvp(function: Callable, values: tuple, tangents: tuple) -> tuple[PyTree, PyTree]:
    """Computes a function and its Jacobian times tangents that are stacked along a last axis."""

    def along(tangents: tuple) -> tuple[PyTree, PyTree]:
        return jax.jvp(function, values, tangents)

    # All tangents share the value; only derivatives get an axis.
    return jax.vmap(along, in_axes=-1, out_axes=(None, -1))(tangents)
