import abc

import equinox as eqx
import jax
import jax.numpy as jnp

from .._typing import Array, Color, Float, RandomKey
from ..numerics import AbstractModule, as_float_leaf


class AbstractBackdrop(AbstractModule):
    """The backdrop that RGBA pictures are composited over."""

    @abc.abstractmethod
    def behind(self, key: RandomKey, count: int) -> Float[Array, "rays 3"] | None:
        """Draws the colour behind every ray of a batch.

        **Arguments:**

        - `key`: the key of the batch.
        - `count`: the number of rays.

        **Returns:**

        The colours to render over, `rays 3`; `None` where the scene's own background is right.
        """

    @abc.abstractmethod
    def compose(
        self, rgba: Float[Array, "rays channels"], behind: Float[Array, "rays 3"] | None
    ) -> Float[Array, "rays 3"]:
        """Composites pixels over the backdrop.

        **Arguments:**

        - `rgba`: straight colours, with or without opacity, `rays channels`.
        - `behind`: the result of `behind`, `rays 3`.

        **Returns:**

        Opaque colours, `rays 3`.
        """


class Solid(AbstractBackdrop):
    """One colour, which the scene's background has too.

    **Arguments:**

    - `color`: the colour, `3`; white by default.
    """

    color: Color = eqx.field(converter=as_float_leaf, default=(1.0, 1.0, 1.0))

    def behind(self, key: RandomKey, count: int) -> Float[Array, "rays 3"] | None:
        del key, count
        return None

    def compose(
        self, rgba: Float[Array, "rays channels"], behind: Float[Array, "rays 3"] | None
    ) -> Float[Array, "rays 3"]:
        del behind
        return over_background(rgba, self.color)


class Random(AbstractBackdrop):
    """A new colour for every ray, so that opacity is learned and not the backdrop."""

    def behind(self, key: RandomKey, count: int) -> Float[Array, "rays 3"] | None:
        return jax.random.uniform(key, (count, 3))

    def compose(
        self, rgba: Float[Array, "rays channels"], behind: Float[Array, "rays 3"] | None
    ) -> Float[Array, "rays 3"]:
        return over_background(rgba, jnp.ones(3) if behind is None else behind)


class IgnoreAlpha(AbstractBackdrop):
    """The colours as they are in the file, whatever their opacity."""

    def behind(self, key: RandomKey, count: int) -> Float[Array, "rays 3"] | None:
        del key, count
        return None

    def compose(
        self, rgba: Float[Array, "rays channels"], behind: Float[Array, "rays 3"] | None
    ) -> Float[Array, "rays 3"]:
        del behind
        return rgba[:, :3]


def over_background(
    rgba: Float[Array, "rays channels"], background: Float[Array, "*rays 3"]
) -> Float[Array, "rays 3"]:
    """Composites straight RGBA over one colour or one a ray; RGB stays as it is."""
    # alpha rgb + (1 - alpha) background
    if rgba.shape[1] == 3:
        return rgba
    alpha = rgba[:, 3:]
    return rgba[:, :3] * alpha + background * (1 - alpha)
