"""Lamps with a size as surfaces: what cameras and secondary rays see of them."""

from collections.abc import Sequence
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .._typing import Array, Color, Int, Matrix3, Vector
from ..lights import AbstractSizedLight
from ..numerics import dot
from ..rays import Hit, Irradiance
from ..scene import Surface
from ..shaders import AbstractShader
from ..transforms import AffineMap, invert
from ._instances import Instance, InstanceStack, Places, stacked
from ._surface_instances import Occluder


class Glow(AbstractShader):
    """The radiance of a lamp, on the sides that shine."""

    radiance: Color
    two_sided: bool = eqx.field(static=True)

    def __call__(self, hit: Hit, view: Vector, lights: Irradiance) -> Color:
        del view, lights
        return jnp.where((hit.side > 0) | self.two_sided, self.radiance, 0)


class LampStacks(NamedTuple):
    """The bodies of all lamps, stacked as surfaces are."""

    surfaces: tuple[InstanceStack, ...]
    occluders: tuple[InstanceStack, ...]
    shaders: tuple[InstanceStack, ...]
    total: int  # the number of bodies
    lights: Places | None  # by body, the stack of its light, and the place in it


def has_size(stack: InstanceStack) -> bool:
    """Returns true for a stack of lamps with a size."""
    return isinstance(stack.members.node, AbstractSizedLight)


def stack_lamps(lights: Sequence[InstanceStack], first: int) -> LampStacks:
    """Makes surfaces of the lamps among lights in the world, with numbers from `first` on.

    Numbers are in the order of the lights; the bodies of one light follow each other.
    """
    kinds = [(kind, stack) for kind, stack in enumerate(lights) if has_size(stack)]
    if not kinds:
        return LampStacks((), (), (), 0, None)
    bodies = [stack.map(_bodies_of) for _, stack in kinds]
    counts = [surfaces.opacity.shape[1] for surfaces, _, _ in bodies]
    order = jnp.concatenate([stack.members.number for _, stack in kinds])
    sizes = np.repeat(counts, [stack.count for _, stack in kinds])
    # The bodies of all lights of smaller numbers come before.
    before = jnp.sum(jnp.where(order[None, :] < order[:, None], sizes[None, :], 0), axis=1)
    starts = jnp.split(before, np.cumsum([stack.count for _, stack in kinds])[:-1])
    surfaces, occluders, shaders = [], [], []
    total = int(np.sum(sizes))
    light_kinds, light_places = jnp.zeros((2, total), jnp.int32)
    for (kind, stack), parts, count, start in zip(kinds, bodies, counts, starts, strict=True):
        numbers = (start[:, None] + jnp.arange(count)).astype(jnp.int32).ravel()
        light_kinds = light_kinds.at[numbers].set(kind)
        places = np.repeat(np.arange(stack.count, dtype=np.int32), count)
        light_places = light_places.at[numbers].set(places)
        surface, forward, inverse = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), parts)
        occluder = Occluder(surface.shape, surface.opacity)
        surfaces.append(_stack(surface, forward, inverse, first + numbers))
        occluders.append(_stack(occluder, forward, inverse, first + numbers))
        shaders.append(_stack(surface.shader, None, None, first + numbers))
    lights_of = Places(light_kinds, light_places)
    return LampStacks(tuple(surfaces), tuple(occluders), tuple(shaders), total, lights_of)


# A map of less volume has no inverse in single precision.
_LEAST_VOLUME = 1e-30


def _bodies_of(light: Instance) -> tuple[Surface, AffineMap, AffineMap]:
    """Returns the bodies of a light as surfaces in the world, along a leading axis."""
    body = light.node.body()
    glow = Glow(light.node.radiance, light.node.two_sided)

    def place(matrix: Matrix3, center: Vector) -> tuple[Surface, AffineMap, AffineMap]:
        # A lamp without a size is not there.
        x, y, z = matrix
        exists = jnp.abs(dot(jnp.cross(x, y), z)) > _LEAST_VOLUME
        matrix = jnp.where(exists, matrix, jnp.eye(3, dtype=matrix.dtype))
        forward = AffineMap(matrix, center, body.keeps_angles)
        return Surface(body.shape, glow, exists.astype(matrix.dtype)), forward, invert(forward)

    return jax.vmap(place)(body.matrices, body.centers)


def _stack(
    node: Surface | Occluder | AbstractShader,
    forward: AffineMap | None,
    inverse: AffineMap | None,
    numbers: Int[Array, " bodies"],
) -> InstanceStack:
    arrays, rest = eqx.partition(node, eqx.is_array)
    return stacked(Instance(arrays, forward, inverse, numbers), rest)
