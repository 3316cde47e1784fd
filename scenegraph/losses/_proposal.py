from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp

from .._typing import Array, Color, Float
from ..rays import Radiance
from ._base import AbstractRayLoss


class ProposalLoss(AbstractRayLoss):
    """The squared error of the last level, and a bound on the weights of the proposals before it.

    A proposal level has no colour of its own. Wherever the last level has weight, the proposal's
    intervals that overlap it must have at least as much.

    **Arguments:**

    - `weight`: the weight of the proposals' losses.

    **Source:** mip-NeRF 360 (Barron et al. 2022), equation 13.
    """

    weight: float = eqx.field(static=True, default=1.0)

    def ray(self, levels: Sequence[Radiance], target: Color) -> Float[Array, " levels"]:
        *proposals, last = levels
        seen = jax.lax.stop_gradient((last.edges, last.weights))
        missed = [missed_weight(level.edges, level.weights, *seen) for level in proposals]
        return jnp.stack([*missed, jnp.mean((last.rgb - target) ** 2)])

    def level_weights(self, count: int) -> Sequence[float]:
        return [self.weight] * (count - 1) + [1.0]


def missed_weight(
    edges: Float[Array, " edges"],
    weights: Float[Array, " edges-1"],
    seen_edges: Float[Array, " seen"],
    seen_weights: Float[Array, " seen-1"],
) -> Float[Array, ""]:
    """Computes the weight of a histogram that another one, its proposal, does not cover."""
    # Equation 13: sum_i max(0, w_i - bound_i)^2 / w_i, where bound_i adds up the weights of the
    # proposal's intervals that overlap interval i (equation 12): a difference of cumulative sums.
    before = jnp.concatenate([jnp.zeros(1, weights.dtype), jnp.cumsum(weights)])
    first = jnp.searchsorted(edges, seen_edges[:-1], side="right") - 1
    last = jnp.searchsorted(edges, seen_edges[1:], side="left")
    most = weights.shape[0]
    bound = before[jnp.clip(last, 0, most)] - before[jnp.clip(first, 0, most)]
    short = jnp.maximum(seen_weights - bound, 0)
    return jnp.sum(short**2 / (seen_weights + 1e-7))
