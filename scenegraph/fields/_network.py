import functools

import equinox as eqx
import jax
import jax.numpy as jnp

from .._typing import Array, Float, RandomKey
from ..numerics import AbstractModule, as_float_leaf


class Dense(AbstractModule):
    """A fully connected layer, `weight @ x + bias`; weight decay applies to these leaves."""

    weight: Float[Array, "outputs inputs"] = eqx.field(converter=as_float_leaf)
    bias: Float[Array, " outputs"] = eqx.field(converter=as_float_leaf)

    def __call__(self, x: Float[Array, " inputs"]) -> Float[Array, " outputs"]:
        return self.weight @ x + self.bias


@functools.partial(jax.jit, static_argnums=0)
def dense_layers(sizes: tuple[tuple[int, int], ...], *, key: RandomKey) -> list[Dense]:
    """Makes layers of sizes `(inputs, outputs)`: Glorot-uniform weights and biases of zero."""
    # One draw for all: to compile one for every shape takes a second.
    count = sum(inputs * outputs for inputs, outputs in sizes)
    numbers = jax.random.uniform(key, (count,), minval=-1.0)
    layers = []
    for inputs, outputs in sizes:
        own, numbers = jnp.split(numbers, [inputs * outputs])
        # Glorot and Bengio 2010, equation 16: uniform on +-sqrt(6 / (inputs + outputs)).
        limit = (6 / (inputs + outputs)) ** 0.5
        layers.append(Dense(limit * own.reshape(outputs, inputs), jnp.zeros(outputs)))
    return layers


class RadianceNetwork(AbstractModule):
    """The network of NeRF (Mildenhall et al. 2020, figure 7) as in the published mip-NeRF code.

    A trunk gives the density, a small head the colour. The features enter the trunk again after
    every `skip`-th layer (not after the first). With view features the head reads
    `[bottleneck, view features]`; `condition` computes their part of its first layer once a ray.
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
        skip: int,
        view_width: int,
        view_depth: int,
        *,
        key: RandomKey,
    ):
        # Widths of the trunk's outputs, with the features where they enter again.
        joined = [width + features * _rejoins(index, skip) for index in range(depth)]
        sizes = [(inputs, width) for inputs in [features, *joined[:-1]]] + [(joined[-1], 1)]
        if view_features:
            head = [width + view_features] + [view_width] * (view_depth - 1)
            sizes += [(joined[-1], width)] + [(inputs, view_width) for inputs in head]
        sizes += [(view_width if view_features else joined[-1], 3)]
        layers = dense_layers(tuple(sizes), key=key)
        self.trunk, self.density = tuple(layers[:depth]), layers[depth]
        self.bottleneck = layers[depth + 1] if view_features else None
        self.head, self.rgb = tuple(layers[depth + 2 : -1]), layers[-1]
        self.skip = skip

    def hidden(self, features: Float[Array, " features"]) -> Float[Array, " hidden"]:
        """Runs the trunk on an encoded sample."""
        # x <- relu(W_i x + b_i), or [relu(W_i x + b_i), features] where they enter again
        x = features
        for index, layer in enumerate(self.trunk):
            x = jax.nn.relu(layer(x))
            if _rejoins(index, self.skip):
                x = jnp.concatenate([x, features])
        return x

    def condition(self, view_features: Float[Array, " view_features"]) -> Float[Array, " head"]:
        """Computes the part of the head's first layer that depends on the encoded direction."""
        if self.bottleneck is None:
            return view_features[:0]
        # W [bottleneck, view] + b = W_1 bottleneck + (W_2 view + b); this is the second summand.
        first = self.head[0]
        return first.weight[:, self.bottleneck.bias.shape[0] :] @ view_features + first.bias

    def color(
        self, hidden: Float[Array, " hidden"], condition: Float[Array, " head"]
    ) -> Float[Array, "3"]:
        """Computes the raw colour, before its activation."""
        if self.bottleneck is None:
            return self.rgb(hidden)
        # W [bottleneck, view] + b = W_1 bottleneck + condition
        first, *others = self.head
        bottleneck = self.bottleneck(hidden)
        x = jax.nn.relu(first.weight[:, : bottleneck.shape[0]] @ bottleneck + condition)
        for layer in others:
            x = jax.nn.relu(layer(x))
        return self.rgb(x)


def _rejoins(index: int, skip: int) -> bool:
    return index > 0 and index % skip == 0
