from typing import TypeVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from .._typing import Array, Bool, Float, Int, Scalar
from ..numerics import AbstractModule


# On the device, or on the host.
_Array = TypeVar("_Array", Array, np.ndarray)


class Annealing(AbstractModule):
    """Wide cones first: a schedule for the width of rays, and of the mean that pictures are taken
    over alike.

    Wide cones see a blurred picture with a blurred gradient, which leads from farther away. Nothing
    else changes, and nothing is computed twice.

    **Arguments:**

    - `start`: how many pixels wide the first rays are; static.
    - `steps`: after so many steps rays are one pixel wide, as they are without annealing; static.
    """

    start: float = eqx.field(static=True, default=8.0)
    steps: int = eqx.field(static=True, default=300)

    def __check_init__(self):
        if not self.start >= 1 or self.steps < 1:
            raise ValueError(
                f"`Annealing` needs a start of at least one pixel and at least one step; got "
                f"{self.start} and {self.steps}."
            )

    def __call__(self, step: Int[Array, ""] | int) -> Scalar:
        """How wide rays are.

        **Arguments:**

        - `step`: its number.

        **Returns:**

        Pixels: from `start` down to exactly 1, by the same factor a step.
        """
        left = jnp.maximum(1 - step / self.steps, 0.0)
        return jnp.exp(jnp.log(self.start) * left)

    @property
    def reach(self) -> int:
        """How many pixels to either side the widest mean can touch."""
        return int(-(-(self.start - 1) // 2)) if self.start > 1 else 0

    def shares(self, width: Scalar) -> Float[Array, " window"]:
        """What each pixel of a line counts in a mean over a width.

        **Arguments:**

        - `width`: in pixels.

        **Returns:**

        Weights of the pixels from `-reach` to `reach`, which add up to one.
        """
        places = jnp.arange(-self.reach, self.reach + 1)
        upper = jnp.minimum(places + 0.5, width / 2)
        lower = jnp.maximum(places - 0.5, -width / 2)
        return jnp.maximum(upper - lower, 0) / width

    def squares(
        self,
        start: Int[_Array, " rays"],
        size: Int[_Array, "rays 2"],
        place: Int[_Array, "rays 2"],
    ) -> Int[_Array, "rays window window"]:
        """Which pixels a mean may touch.

        **Arguments:**

        - `start`: where in the flat list the picture of each pixel begins.
        - `size`: of that picture, width and height.
        - `place`: column and row of the pixel.

        **Returns:**

        Indices in the flat list, row by row; at the picture's edge they repeat.
        """
        away = np.arange(-self.reach, self.reach + 1)
        columns = (place[:, :1] + away).clip(0, size[:, :1] - 1)
        rows = (place[:, 1:] + away).clip(0, size[:, 1:] - 1)
        return start[:, None, None] + rows[:, :, None] * size[:, :1, None] + columns[:, None]

    def mean(
        self, squares: Float[Array, "rays window window channels"], width: Scalar
    ) -> Float[Array, "rays channels"]:
        """The means over squares.

        **Arguments:**

        - `squares`: the pixels that `squares` names.
        - `width`: in pixels.

        **Returns:**

        One colour a ray.
        """
        shares = self.shares(width)
        return jnp.einsum("i,j,rijc->rc", shares, shares, squares)

    def inside(
        self, size: Int[Array, "rays 2"], place: Int[Array, "rays 2"], width: Scalar
    ) -> Bool[Array, " rays"]:
        """Whether squares lie in their pictures.

        **Arguments:**

        - `size`: of the pictures, width and height.
        - `place`: column and row of the pixels.
        - `width`: of the squares, in pixels.

        **Returns:**

        One boolean a ray.
        """
        centre = place + 0.5
        return jnp.all((centre - width / 2 >= 0) & (centre + width / 2 <= size), axis=1)
