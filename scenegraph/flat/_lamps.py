"""Lamps with a size as surfaces: what cameras and secondary rays see of them."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp

from .._typing import Array, Color, Int, Vector
from ..lights import AbstractSizedLight, MeshLight
from ..numerics import dot, Frozen, unfreeze
from ..rays import Hit, Irradiance
from ..scene import Leaf, Surface
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
    """The bodies of lamps but meshes, stacked as surfaces are."""

    surfaces: tuple[InstanceStack, ...]
    occluders: tuple[InstanceStack, ...]
    shaders: tuple[InstanceStack, ...]
    # The lights, whose numbers are those of their bodies; -1 for lights without a size.
    lights: tuple[InstanceStack, ...]
    light_of_body: Places | None  # the stack of a body's light, and the place in it; meshes first
    total: int  # the number of bodies


def has_size(stack: InstanceStack) -> bool:
    """Returns true for a stack of lamps with a size."""
    return isinstance(stack.members.node, AbstractSizedLight)


def mesh_lamp(leaf: Leaf, untie: Callable[[Any], Any]) -> Leaf:
    """Returns the surface that a lamp of triangles is, in the lamp's frame."""
    node, transforms = untie((leaf.node, leaf.transforms))
    light = unfreeze(Frozen(node) if leaf.frozen else node)
    surface = Surface(light.body().shape, Glow(light.radiance, light.two_sided))
    return leaf._replace(node=surface, transforms=transforms)


def stack_lamps(
    lights: Sequence[InstanceStack], first: int, mesh_lamps: tuple[int, ...]
) -> LampStacks:
    """Makes surfaces of the lamps among lights in the world, with numbers from `first` on.

    `mesh_lamps` are the numbers of lights that are meshes; these are surfaces already, with the
    first of the numbers. The others follow in the order of the lights.
    """
    kinds = [(kind, stack) for kind, stack in enumerate(lights) if has_size(stack)]
    if not kinds:
        return LampStacks((), (), (), tuple(lights), None, 0)
    others = [stack.members.number for _, stack in kinds if not _is_mesh(stack)]
    order = jnp.sort(jnp.concatenate([jnp.zeros(0, jnp.int32), *others]))
    # By body, the number of its light.
    order = jnp.concatenate([jnp.asarray(mesh_lamps, jnp.int32), order])
    total, parts = order.shape[0], []
    numbered = [_with_number(stack, jnp.full(stack.count, -1, jnp.int32)) for stack in lights]
    light_kinds, light_places = jnp.zeros((2, total), jnp.int32)
    for kind, stack in kinds:
        is_body = order[None, :] == stack.members.number[:, None]
        bodies = jnp.argmax(is_body, axis=1).astype(jnp.int32)
        light_kinds = light_kinds.at[bodies].set(kind)
        light_places = light_places.at[bodies].set(jnp.arange(stack.count, dtype=jnp.int32))
        numbered[kind] = _with_number(stack, first + bodies)
        if not _is_mesh(stack):
            parts.append(_surfaces_of(stack, first + bodies))
    surfaces, occluders, shaders = zip(*parts, strict=True) if parts else ((), (), ())
    places = Places(light_kinds, light_places)
    count = total - len(mesh_lamps)
    return LampStacks(surfaces, occluders, shaders, tuple(numbered), places, count)


def _is_mesh(stack: InstanceStack) -> bool:
    return isinstance(stack.members.node, MeshLight)


def _with_number(stack: InstanceStack, number: Int[Array, " lights"]) -> InstanceStack:
    return eqx.tree_at(lambda x: x.members.number, stack, number)


def _surfaces_of(
    stack: InstanceStack, numbers: Int[Array, " lights"]
) -> tuple[InstanceStack, InstanceStack, InstanceStack]:
    """Returns the bodies of lights as surfaces, occluders and shaders."""
    surface, forward, inverse = stack.map(_body_of)
    occluder = Occluder(surface.shape, surface.opacity)
    return (
        _stack(surface, forward, inverse, numbers),
        _stack(occluder, forward, inverse, numbers),
        _stack(surface.shader, None, None, numbers),
    )


# A map of less volume has no inverse in single precision.
_LEAST_VOLUME = 1e-30


def _body_of(light: Instance) -> tuple[Surface, AffineMap, AffineMap]:
    """Returns the body of a light as a surface in the world."""
    body = light.node.body()
    glow = Glow(light.node.radiance, light.node.two_sided)
    # A lamp without a size is not there.
    x, y, z = body.matrix
    exists = jnp.abs(dot(jnp.cross(x, y), z)) > _LEAST_VOLUME
    matrix = jnp.where(exists, body.matrix, jnp.eye(3, dtype=body.matrix.dtype))
    forward = AffineMap(matrix, body.center, body.keeps_angles)
    return Surface(body.shape, glow, exists.astype(matrix.dtype)), forward, invert(forward)


def _stack(
    node: Surface | Occluder | AbstractShader,
    forward: AffineMap | None,
    inverse: AffineMap | None,
    numbers: Int[Array, " lights"],
) -> InstanceStack:
    arrays, rest = eqx.partition(node, eqx.is_array)
    return stacked(Instance(arrays, forward, inverse, numbers), rest)
