import jax
import jax.numpy as jnp

from .._typing import Array, Integer, RandomKey
from ..numerics import AbstractModule


class Keys(AbstractModule):
    """The random keys of a fit, one for each purpose: no two purposes ever use the same key.

    What is random in step `n` uses `fold_in(key, n)` of the purpose's key, and what is random in a
    ray of that step another `fold_in` with the index of the ray in the batch. `budget` is for the
    trial rendering that chooses the first sample budget.
    """

    weights: RandomKey
    batches: RandomKey
    steps: RandomKey
    occupancy: RandomKey
    budget: RandomKey

    def seed(self) -> Integer[Array, ""]:
        """Returns the seed of the batches, an unsigned integer of 32 bits."""
        return _draw_seed(self.batches)


def split_by_purpose(key: RandomKey) -> Keys:
    """Splits the key of a fit, once, into a key for each purpose.

    **Arguments:**

    - `key`: the key of the whole fit, as `fit` and `start_state` take it. Use it for nothing else:
      for the initial weights, take `weights` of the result.

    **Returns:**

    The keys: `weights`, `batches`, `steps`, `occupancy` and `budget`.

    Example:

    ```python
    key = jax.random.key(0)
    field = sg.fields.NerfMLP(key=sg.fitting.split_by_purpose(key).weights)
    ```
    """
    return Keys(*_split(key))


# Each compiled as one program, where it would be several small ones at the start of a fit.
@jax.jit
def _split(key: RandomKey) -> tuple[RandomKey, ...]:
    return tuple(jax.random.split(key, 5))


@jax.jit
def _draw_seed(key: RandomKey) -> Integer[Array, ""]:
    return jax.random.bits(key, dtype=jnp.uint32)


def shared_keys(key: RandomKey) -> Keys:
    """Returns the keys of fits that were saved when all purposes still shared one key."""
    first, second, third = (jax.random.fold_in(key, number) for number in range(3))
    return Keys(weights=second, batches=first, steps=key, occupancy=third, budget=key)
