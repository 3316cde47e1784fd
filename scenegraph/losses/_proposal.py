from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp

from .._typing import Array, Color, Float
from ..rays import Radiance
from ._base import AbstractRayLoss


class ProposalLoss(AbstractRayLoss):
    """The mean squared error of the last level; the levels before must only not miss anything.

    A level that proposes where to look has no colour of its own. Wherever the last level sees
    something, there must have been as much weight in the intervals that touch the place.

    **Arguments:**

    - `weight`: of the proposals' losses.

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
    """How much of what a histogram sees another one, which should cover it, has missed.

    **Arguments:**

    - `edges`, `weights`: of the one that should cover.
    - `seen_edges`, `seen_weights`: of the other.

    **Returns:**

    The sum of `max(0, seen - cover) ** 2 / seen`, where `cover` adds up the weights of all
    intervals that touch the place; zero if nothing is missed.
    """
    before = jnp.concatenate([jnp.zeros(1, weights.dtype), jnp.cumsum(weights)])
    first = jnp.searchsorted(edges, seen_edges[:-1], side="right") - 1
    last = jnp.searchsorted(edges, seen_edges[1:], side="left")
    most = weights.shape[0]
    cover = before[jnp.clip(last, 0, most)] - before[jnp.clip(first, 0, most)]
    short = jnp.maximum(seen_weights - cover, 0)
    return jnp.sum(short**2 / (seen_weights + 1e-7))
