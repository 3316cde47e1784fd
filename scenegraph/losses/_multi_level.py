from collections.abc import Sequence

import equinox as eqx
import jax.numpy as jnp

from .._typing import Array, Float, PyTree, Scalar
from ..rays import Radiance
from ._base import AbstractLoss, LossTerms
from ._metrics import mse_to_psnr


class MultiLevelLoss(AbstractLoss):
    """mip-NeRF's loss: squared error of the last level, plus a little of all the others.

    Each level's error is weighted by the rays' `lossmult` and divided by its sum.

    **Arguments:**

    - `coarse_weight`: of every level but the last.
    - `sum_channels`: add the three channels up, as the published code does, instead of taking
      their mean; the value is then three times as large.

    **Source:** mip-NeRF (Barron et al. 2021), equation 16.
    """

    coarse_weight: float = eqx.field(static=True, default=0.1)
    sum_channels: bool = eqx.field(static=True, default=False)

    def __call__(
        self, levels: Sequence[Radiance], batch: PyTree, scene: PyTree
    ) -> tuple[Scalar, LossTerms]:
        del scene
        errors = jnp.stack([level.rgb - batch.rgb for level in levels]) ** 2
        weighted = jnp.sum(batch.lossmult[:, None] * errors, axis=(1, 2))
        channels = 1 if self.sum_channels else 3
        losses = weighted / (channels * jnp.sum(batch.lossmult))
        value = losses[-1] + self.coarse_weight * jnp.sum(losses[:-1])
        return value, LossTerms(losses, _psnr(errors))


def _psnr(errors: Float[Array, "levels rays 3"]) -> Float[Array, " levels"]:
    return mse_to_psnr(jnp.mean(errors, axis=(1, 2)))
