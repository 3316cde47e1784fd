import equinox as eqx
import jax.numpy as jnp

from .._typing import Array, Float, Int, Scalar
from ..numerics import AbstractModule


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
