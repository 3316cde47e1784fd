import equinox as eqx
import jax

from .._typing import PyTree, RandomKey, Scalar
from ..data import Batch
from ..integrators import AbstractIntegrator
from ..losses import AbstractLoss, LossTerms, MultiLevelLoss
from ..numerics import AbstractModule
from ..render import render_rays
from ..scene import mean_square_weight, Scene


class RenderLoss(AbstractModule):
    """Renders a batch of rays and compares: the `loss` that `step` takes for scenes.

    **Arguments:**

    - `loss`: compares radiance with pixels.
    - `integrator`: how rays are rendered; `None` as the scene says.
    - `weight_decay`: times the mean square of all network weights, added to the loss.
    - `jitter`: whether samples are jittered and densities noisy.
    """

    loss: AbstractLoss = MultiLevelLoss()
    integrator: AbstractIntegrator | None = None
    weight_decay: float = eqx.field(static=True, default=0.0)
    jitter: bool = eqx.field(static=True, default=True)

    def __call__(
        self, scene: Scene, terms: LossTerms | None, batch: Batch, key: RandomKey
    ) -> tuple[Scalar, LossTerms]:
        del terms
        levels = render_rays(
            scene,
            batch.rays,
            self.integrator,
            key=key if self.jitter else None,
            background=batch.background,
        )
        value, terms = self.loss(levels, batch, scene)
        if self.weight_decay > 0:
            value = value + self.weight_decay * mean_square_weight(scene)
        return value, terms


def empty_extra(loss, model: PyTree, batches, key: RandomKey) -> PyTree:
    """Zeros of the kind that a loss returns beside its value, to begin with.

    **Arguments:**

    - `loss`: as for `step`.
    - `model`: the scene, or any Module.
    - `batches`: with a method `batch(seed, step)`.
    - `key`: any.

    **Returns:**

    A tree of zeros.
    """

    def trial(model: PyTree, batches, key: RandomKey) -> PyTree:
        return loss(model, None, batches.batch(0, 0), key)[1]

    shapes = eqx.filter_eval_shape(trial, model, batches, key)
    return jax.tree.map(lambda leaf: jax.numpy.zeros(leaf.shape, leaf.dtype), shapes)
