import abc
from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp

from .._typing import Array, Color, Float, PyTree, Scalar
from ..numerics import AbstractModule, as_float_leaf, safe_divide
from ..rays import Radiance
from ._metrics import mse_to_psnr


class LossTerms(AbstractModule):
    """What a loss says beside its value. Gradients do not flow through it.

    **Arguments:**

    - `losses`: the term of every level, coarse to fine, before weighting.
    - `mse`: of every level on this batch: the mean squared error over rays and channels.
    - `left_out`: how many rays did not count, because they meet more surfaces than they can see, or
      because there was no room for their samples.
    - `asked`: how many samples a ray asked for, on average, where rays share their room.
    """

    losses: Float[Array, "*steps levels"] = eqx.field(converter=as_float_leaf)
    mse: Float[Array, "*steps levels"] = eqx.field(converter=as_float_leaf)
    left_out: Float[Array, "*steps"] = eqx.field(converter=as_float_leaf, default=0.0)
    asked: Float[Array, "*steps"] = eqx.field(converter=as_float_leaf, default=0.0)

    @property
    def psnr(self) -> Float[Array, "*steps levels"]:
        """Of every level on this batch, in decibels."""
        return mse_to_psnr(self.mse)


class AbstractLoss(AbstractModule):
    """Compares what rays saw with what they should have seen."""

    @abc.abstractmethod
    def __call__(
        self, levels: Sequence[Radiance], batch: PyTree, scene: PyTree
    ) -> tuple[Scalar, LossTerms]:
        """The loss of one batch.

        **Arguments:**

        - `levels`: radiance of the rays, coarse to fine.
        - `batch`: with `rgb` (`rays 3`) and `lossmult` (`rays`).
        - `scene`: for regularisers.

        **Returns:**

        The value to minimise, and its terms.
        """


class AbstractRayLoss(AbstractLoss):
    """A loss in which every ray speaks for itself: a mean over rays, weighted by `lossmult`.

    A batch can then be rendered and differentiated a few rays at a time, which is faster and
    takes less memory; `RenderLoss` does that.
    """

    @abc.abstractmethod
    def ray(self, levels: Sequence[Radiance], target: Color) -> Float[Array, " levels"]:
        """The error of one ray.

        **Arguments:**

        - `levels`: its radiance, coarse to fine.
        - `target`: the colour it should have seen.

        **Returns:**

        One number a level.
        """

    @abc.abstractmethod
    def level_weights(self, count: int) -> Sequence[float]:
        """How much each level counts.

        **Arguments:**

        - `count`: how many levels there are.

        **Returns:**

        One number a level.
        """

    def __call__(
        self, levels: Sequence[Radiance], batch: PyTree, scene: PyTree
    ) -> tuple[Scalar, LossTerms]:
        del scene
        errors = jax.vmap(self.ray)(levels, batch.rgb)
        complete = _complete(levels[-1])
        counted = complete * batch.lossmult
        sums = counted @ errors, jnp.sum(counted)
        losses = jax.vmap(safe_divide, (0, None))(*sums)
        value = jnp.sum(jnp.asarray(self.level_weights(len(levels)), losses.dtype) * losses)
        squares = jnp.stack([level.rgb - batch.rgb for level in levels]) ** 2
        mse = complete @ jnp.mean(squares, axis=2).T / jnp.maximum(jnp.sum(complete), 1)
        last = levels[-1]
        asked = jnp.zeros(()) if last.asked is None else jnp.mean(last.asked, dtype=losses.dtype)
        return value, LossTerms(losses, mse, jnp.sum(1 - complete), asked)


def _complete(level: Radiance) -> Float[Array, " rays"]:
    """One for rays that see all there is to see; zero for those that are to be left out."""
    everywhere = jnp.ones_like(level.alpha)
    return everywhere if level.overflow is None else everywhere * (level.overflow == 0)
