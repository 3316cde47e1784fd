from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from .._typing import Array, PyTree, Scalar
from ..fields import Dense


def network_weights(tree: PyTree) -> list[Array]:
    """Returns all weights and biases of networks, in tree order.

    Weight decay and parameter counts are over these; poses, colours and other physical leaves are
    not among them.
    """

    def is_dense(node: Any) -> bool:
        return isinstance(node, Dense)

    layers = [node for node in jax.tree.leaves(tree, is_leaf=is_dense) if is_dense(node)]
    return [leaf for layer in layers for leaf in jax.tree.leaves(layer) if eqx.is_array(leaf)]


def count_parameters(tree: PyTree) -> int:
    """Counts the numbers that the networks of a scene hold.

    **Arguments:**

    - `tree`: a scene or any part of one.

    **Returns:**

    The number of network weights and biases.
    """
    return sum(weight.size for weight in network_weights(tree))


def mean_square_weight(tree: PyTree) -> Scalar:
    """Returns the mean of all squared network weights; 0 without a network."""
    weights = network_weights(tree)
    total = sum((jnp.sum(weight**2) for weight in weights), start=jnp.zeros(()))
    return total / max(1, sum(weight.size for weight in weights))
