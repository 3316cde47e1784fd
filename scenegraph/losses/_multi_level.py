from collections.abc import Sequence

import equinox as eqx
import jax.numpy as jnp

from .._typing import Array, Color, Float
from ..rays import Radiance
from ._base import AbstractRayLoss


class MultiLevelLoss(AbstractRayLoss):
    """mip-NeRF's loss: the squared error of the last level, plus a small part of the others'.

    Each level's error is weighted by the rays' `lossmult` and divided by its sum.

    **Arguments:**

    - `coarse_weight`: the weight of every level but the last.
    - `sum_channels`: if true, the three channels are added, as in the published code, instead of
      averaged; the value is then three times as large.

    **Source:** mip-NeRF (Barron et al. 2021), equation 16.
    """

    coarse_weight: float = eqx.field(static=True, default=0.1)
    sum_channels: bool = eqx.field(static=True, default=False)

    def ray(self, levels: Sequence[Radiance], target: Color) -> Float[Array, " levels"]:
        # Equation 16, per ray: |C_coarse - C|^2 and |C_fine - C|^2.
        squares = jnp.stack([level.rgb - target for level in levels]) ** 2
        return jnp.sum(squares, axis=1) / (1 if self.sum_channels else 3)

    def level_weights(self, count: int) -> Sequence[float]:
        return [self.coarse_weight] * (count - 1) + [1.0]
