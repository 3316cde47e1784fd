from collections.abc import Callable

import jax

from .._typing import PyTree
from ._ray import Ray


def by_pixel(function: Callable, ray: Ray) -> tuple[PyTree, PyTree]:
    """A function of a ray's line, and how it changes from pixel to pixel.

    **Arguments:**

    - `function`: from origin and direction to a tree of arrays.
    - `ray`: one ray.

    **Returns:**

    `(values, slopes)`: the slopes have a last axis of two, for the pixel's x and y.
    """
    return push(function, (ray.origin, ray.direction), (ray.d_origin.T, ray.d_direction.T))


def push(function: Callable, values: tuple, slopes: tuple) -> tuple[PyTree, PyTree]:
    """A function of quantities that change from pixel to pixel.

    **Arguments:**

    - `function`: of the quantities.
    - `values`: what they are in the middle of the pixel.
    - `slopes`: of the same structure; every array has one more axis at its end, of two, for the
      derivatives by the pixel's x and y.

    **Returns:**

    Values and slopes of what the function returns.
    """

    def along(tangents: tuple) -> tuple[PyTree, PyTree]:
        return jax.jvp(function, values, tangents)

    return jax.vmap(along, in_axes=-1, out_axes=(None, -1))(slopes)
