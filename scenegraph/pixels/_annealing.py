from typing import TypeVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from .._typing import Array, Bool, Float, Int, Scalar
from ..numerics import AbstractModule, einsum


# Arrays on the device, or on the host.
_Array = TypeVar("_Array", Array, np.ndarray)


class Annealing(AbstractModule):
    """A coarse-to-fine schedule for the width of rays and of the squares that pictures show.

    Wide cones see a blurred picture with a blurred gradient, which leads from farther away. Nothing
    else changes, and nothing is computed twice.

    **Arguments:**

    - `start`: the width of the first rays, in pixels; static.
    - `steps`: the number of steps after which rays are one pixel wide, as they are without
      annealing; static.
    - `part`: the part of a fit, from 0 to 1, after which they are, if that is more steps; static.
    - `epoch`: the number of steps that draw as many pixels as there are. A fit of two epochs and
      more begins with rays of one pixel, one of fewer with wider ones, up to `start`. With 0, all
      begin with `start`; static.
    """

    start: float = eqx.field(static=True, default=8.0)
    steps: int = eqx.field(static=True, default=300)
    part: float = eqx.field(static=True, default=0.0)
    epoch: float = eqx.field(static=True, default=0.0)

    def __check_init__(self):
        if not self.start >= 1 or self.steps < 1:
            raise ValueError(
                f"`Annealing` needs a start of at least one pixel and at least one step; got "
                f"{self.start} and {self.steps}."
            )
        if not 0 <= self.part <= 1:
            raise ValueError(f"`part` of `Annealing` is between 0 and 1; got {self.part}.")
        if not self.epoch >= 0:
            raise ValueError(f"`epoch` of `Annealing` is at least 0; got {self.epoch}.")

    def __call__(
        self, step: Int[Array, ""] | int, horizon: Float[Array, ""] | float = 0.0
    ) -> Scalar:
        """Computes the width of the rays of a step, in pixels.

        It goes from the start down to exactly 1, by the same factor a step. `horizon` is the number
        of the last step, for schedules by a `part` of the fit or by an `epoch`.
        """
        # start^(1 - step / end), end = max(steps, part horizon)
        end = jnp.maximum(self.steps, self.part * horizon)
        start = jnp.asarray(self.start)
        if self.epoch:
            # Squares of two epochs / horizon pixels make up for the pixels that are never drawn.
            start = jnp.clip(2 * self.epoch / jnp.maximum(horizon, 1), 1, self.start)
        return jnp.exp(jnp.log(start) * jnp.maximum(1 - step / end, 0.0))

    @property
    def radius(self) -> int:
        """The number of pixels to either side that the widest mean touches."""
        return int(-(-(self.start - 1) // 2)) if self.start > 1 else 0

    def weights(self, width: Scalar) -> Float[Array, " window"]:
        """Computes the weights of a line of pixels in a mean over a width; their sum is 1."""
        # The overlap of [i - 1/2, i + 1/2] with [-width / 2, width / 2], over the width
        places = jnp.arange(-self.radius, self.radius + 1)
        upper = jnp.minimum(places + 0.5, width / 2)
        lower = jnp.maximum(places - 0.5, -width / 2)
        return jnp.maximum(upper - lower, 0) / width

    def windows(
        self,
        start: Int[_Array, " rays"],
        size: Int[_Array, "rays 2"],
        place: Int[_Array, "rays 2"],
    ) -> Int[_Array, "rays window window"]:
        """Lists the pixels that a mean may touch, by indices in the flat list, row by row.

        Pictures begin at `start` and have `size`, width and height; at their edges, pixels repeat.
        """
        # start + row width + column, with rows and columns clamped to the picture
        away = np.arange(-self.radius, self.radius + 1)
        columns = (place[:, :1] + away).clip(0, size[:, :1] - 1)
        rows = (place[:, 1:] + away).clip(0, size[:, 1:] - 1)
        return start[:, None, None] + rows[:, :, None] * size[:, :1, None] + columns[:, None]

    def mean(
        self, pixels: Float[Array, "rays window window channels"], width: Scalar
    ) -> Float[Array, "rays channels"]:
        """Averages the pixels that `windows` lists over squares of `width` pixels."""
        # sum_ij w_i w_j p_ij: the box filter is separable
        weights = self.weights(width)
        return einsum("i,j,rijc->rc", weights, weights, pixels)

    def is_inside(
        self, size: Int[Array, "rays 2"], place: Int[Array, "rays 2"], width: Scalar
    ) -> Bool[Array, " rays"]:
        """Returns true for squares about `place`, column and row, without a part outside."""
        # Clamped pixels would count twice: squares that reach over the edge are left out of the
        # loss.
        centre = place + 0.5
        return jnp.all((centre - width / 2 >= 0) & (centre + width / 2 <= size), axis=1)
