import abc
from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp

from .._typing import Array, Color, Float, PyTree, Scalar
from ..numerics import AbstractModule, as_float_leaf, matmul, safe_divide
from ..rays import Radiance
from ._metrics import mse_to_psnr


class LossTerms(AbstractModule):
    """The terms of a loss and other statistics of a batch, through which no gradients flow.

    **Arguments:**

    - `losses`: the term of every level, coarse to fine, before weighting.
    - `mse`: mean squared error of every level over the batch's rays and channels.
    - `left_out`: number of rays that did not count, because their surfaces or samples exceeded the
      budget.
    - `requested`: mean number of samples that a ray requested from a shared budget; 0 without one.
    """

    losses: Float[Array, "*steps levels"] = eqx.field(converter=as_float_leaf)
    mse: Float[Array, "*steps levels"] = eqx.field(converter=as_float_leaf)
    left_out: Float[Array, "*steps"] = eqx.field(converter=as_float_leaf, default=0.0)
    requested: Float[Array, "*steps"] = eqx.field(converter=as_float_leaf, default=0.0)

    @property
    def psnr(self) -> Float[Array, "*steps levels"]:
        """The PSNR of every level on this batch, in decibels."""
        return mse_to_psnr(self.mse)


class AbstractLoss(AbstractModule):
    """A loss of the rendered values of a batch of rays.

    A loss that is a mean over rays is better written as an `AbstractRayLoss`. This class is for
    losses that see all rays, or the scene, at once.

    Example: a regulariser, added to another loss.

    ```python
    class DarkAlbedo(sg.losses.AbstractLoss):
        inner: sg.losses.AbstractLoss
        strength: float = 1e-3

        def __call__(self, levels, batch, scene):
            value, terms = self.inner(levels, batch, scene)
            leaves = sg.scene.named_leaves(scene)
            penalty = sum(jnp.sum(x**2) for path, x, _ in leaves if path.endswith("color_a"))
            return value + self.strength * penalty, terms


    loss = DarkAlbedo(sg.losses.MultiLevelLoss())
    ```
    """

    @abc.abstractmethod
    def __call__(
        self, levels: Sequence[Radiance], batch: PyTree, scene: PyTree
    ) -> tuple[Scalar, LossTerms]:
        """Computes the loss of one batch.

        **Arguments:**

        - `levels`: rendered values of the rays (`rays ...`) at every level, coarse to fine.
        - `batch`: a record with fields `rgb` (`rays 3`), the true colours, and `lossmult` (`rays`),
          the rays' weights.
        - `scene`: the scene, for regularisers.

        **Returns:**

        `(value, terms)`: the scalar to minimise, and its terms.
        """


class AbstractRayLoss(AbstractLoss):
    """A loss that is a mean over rays, weighted by `lossmult`.

    A batch can then be rendered and differentiated a few rays at a time, which is faster and
    takes less memory; `RenderLoss` does that.

    Example: the absolute error of the last level.

    ```python
    class AbsoluteError(sg.losses.AbstractRayLoss):
        def ray(self, levels, target):
            return jnp.stack([jnp.mean(jnp.abs(level.rgb - target)) for level in levels])

        def level_weights(self, count):
            return [0.0] * (count - 1) + [1.0]
    ```
    """

    @abc.abstractmethod
    def ray(self, levels: Sequence[Radiance], target: Color) -> Float[Array, " levels"]:
        """Computes the error of one ray.

        **Arguments:**

        - `levels`: rendered values of the ray at every level, coarse to fine.
        - `target`: the true colour.

        **Returns:**

        One error per level.
        """

    @abc.abstractmethod
    def level_weights(self, count: int) -> Sequence[float]:
        """Returns the levels' weights in the loss.

        **Arguments:**

        - `count`: number of levels.

        **Returns:**

        One weight per level, coarse to fine.
        """

    def __call__(
        self, levels: Sequence[Radiance], batch: PyTree, scene: PyTree
    ) -> tuple[Scalar, LossTerms]:
        del scene
        errors = jax.vmap(self.ray)(levels, batch.rgb)
        last = levels[-1]
        # Rays that exceeded the budget miss surfaces or samples: they are left out as a whole.
        complete = jnp.ones_like(last.alpha)
        if last.overflow is not None:
            complete = complete * (last.overflow == 0)
        # Per level, sum(lossmult * error) / sum(lossmult) over complete rays.
        counted = complete * batch.lossmult
        sums = matmul(counted, errors), jnp.sum(counted)
        losses = jax.vmap(safe_divide, (0, None))(*sums)
        value = jnp.sum(jnp.asarray(self.level_weights(len(levels)), losses.dtype) * losses)
        # The mean squared error counts complete rays equally, whatever their lossmult.
        squares = jnp.stack([level.rgb - batch.rgb for level in levels]) ** 2
        mse = matmul(complete, jnp.mean(squares, axis=2).T) / jnp.maximum(jnp.sum(complete), 1)
        requested = (
            jnp.zeros(())
            if last.requested is None
            else jnp.mean(last.requested, dtype=losses.dtype)
        )
        return value, LossTerms(losses, mse, jnp.sum(1 - complete), requested)
