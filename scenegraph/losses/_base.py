import abc
from collections.abc import Sequence

import equinox as eqx

from .._typing import Array, Float, PyTree, Scalar
from ..numerics import AbstractModule, as_float_leaf
from ..rays import Radiance


class LossTerms(AbstractModule):
    """What a loss says beside its value.

    **Arguments:**

    - `losses`: the term of every level, coarse to fine, before weighting.
    - `psnr`: of every level on this batch, in decibels: of the mean over rays and channels.
    """

    losses: Float[Array, " levels"] = eqx.field(converter=as_float_leaf)
    psnr: Float[Array, " levels"] = eqx.field(converter=as_float_leaf)


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
