import functools

import equinox as eqx
import jax
import jax.numpy as jnp

from .._typing import Array, Float, RandomKey
from ..numerics import AbstractModule, as_float_leaf


class Dense(AbstractModule):
    """A fully connected layer, `weight @ x + bias`. Its leaves are what weight decay is over.

    **Arguments:**

    - `weight`: `outputs inputs`.
    - `bias`: one number an output.
    """

    weight: Float[Array, "outputs inputs"] = eqx.field(converter=as_float_leaf)
    bias: Float[Array, " outputs"] = eqx.field(converter=as_float_leaf)

    def __call__(self, x: Float[Array, " inputs"]) -> Float[Array, " outputs"]:
        return self.weight @ x + self.bias


@functools.partial(jax.jit, static_argnums=0)
def dense_layers(sizes: tuple[tuple[int, int], ...], *, key: RandomKey) -> list[Dense]:
    """New layers: Glorot-uniform weights and biases of zero.

    **Arguments:**

    - `sizes`: `(inputs, outputs)` of each layer; static.
    - `key`: for the weights. Keyword only argument.

    **Returns:**

    The layers.
    """
    # One draw for all: to compile one for every shape takes a second.
    count = sum(inputs * outputs for inputs, outputs in sizes)
    numbers = jax.random.uniform(key, (count,), minval=-1.0)
    layers = []
    for inputs, outputs in sizes:
        own, numbers = jnp.split(numbers, [inputs * outputs])
        limit = (6 / (inputs + outputs)) ** 0.5
        layers.append(Dense(limit * own.reshape(outputs, inputs), jnp.zeros(outputs)))
    return layers


class RadianceNetwork(AbstractModule):
    """The network of NeRF and mip-NeRF: a trunk for density, a small head for colour.

    The features enter the trunk again after every `skip`-th layer (not after the first). With
    view features the colour head reads `[bottleneck, view features]`; what the view contributes
    to its first layer is worked out once a ray (`condition`).

    **Arguments:**

    - `features`, `view_features`: sizes of the inputs; no view features, no view dependence.
    - `width`, `depth`: of the trunk.
    - `skip`: after how many layers the features enter again.
    - `view_width`, `view_depth`: of the colour head.
    - `key`: for the weights. Keyword only argument.

    **Source:** NeRF (Mildenhall et al. 2020), figure 7, as in the published mip-NeRF code.
    """

    trunk: tuple[Dense, ...]
    density: Dense
    bottleneck: Dense | None
    head: tuple[Dense, ...]
    rgb: Dense
    skip: int = eqx.field(static=True)

    def __init__(
        self,
        features: int,
        view_features: int,
        width: int,
        depth: int,
        *,
        skip: int,
        view_width: int,
        view_depth: int,
        key: RandomKey,
    ):
        trunk_sizes, width_out = _trunk_sizes(features, width, depth, skip)
        head_sizes = _head_sizes(width + view_features, view_width, view_depth)
        sizes = [(n, width) for n in trunk_sizes] + [(width_out, 1)]
        if view_features:
            sizes += [(width_out, width)] + [(n, view_width) for n in head_sizes]
        sizes += [(view_width if view_features else width_out, 3)]
        layers = dense_layers(tuple(sizes), key=key)
        self.trunk, self.density = tuple(layers[:depth]), layers[depth]
        self.bottleneck = layers[depth + 1] if view_features else None
        self.head, self.rgb = tuple(layers[depth + 2 : -1]), layers[-1]
        self.skip = skip

    def hidden(self, features: Float[Array, " features"]) -> Float[Array, " hidden"]:
        """What the trunk makes of a sample.

        **Arguments:**

        - `features`: the encoded sample.

        **Returns:**

        The numbers that density and colour are read from.
        """
        x = features
        for index, layer in enumerate(self.trunk):
            x = jax.nn.relu(layer(x))
            if _rejoins(index, self.skip):
                x = jnp.concatenate([x, features])
        return x

    def condition(self, view_features: Float[Array, " view_features"]) -> Float[Array, " head"]:
        """What the view contributes to the first layer of the colour head.

        **Arguments:**

        - `view_features`: the encoded direction of the ray.

        **Returns:**

        A vector to add there, the layer's bias included; empty without view dependence.
        """
        if self.bottleneck is None:
            return view_features[:0]
        first = self.head[0]
        return first.weight[:, self.bottleneck.bias.shape[0] :] @ view_features + first.bias

    def color(
        self, hidden: Float[Array, " hidden"], condition: Float[Array, " head"]
    ) -> Float[Array, "3"]:
        """The raw colour, before its activation.

        **Arguments:**

        - `hidden`: from `hidden`.
        - `condition`: from `condition`.

        **Returns:**

        Three numbers.
        """
        if self.bottleneck is None:
            return self.rgb(hidden)
        first, *others = self.head
        bottleneck = self.bottleneck(hidden)
        x = jax.nn.relu(first.weight[:, : bottleneck.shape[0]] @ bottleneck + condition)
        for layer in others:
            x = jax.nn.relu(layer(x))
        return self.rgb(x)


def _rejoins(index: int, skip: int) -> bool:
    return index > 0 and index % skip == 0


def _trunk_sizes(features: int, width: int, depth: int, skip: int) -> tuple[list[int], int]:
    """What each layer of the trunk reads, and what those after it read."""
    joined = [width + features * _rejoins(index, skip) for index in range(depth)]
    return [features, *joined[:-1]], joined[-1]


def _head_sizes(first: int, width: int, depth: int) -> list[int]:
    return [first] + [width] * (depth - 1)
