"""The size of the program of one ray that is tested against all surfaces of a scene."""

import functools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .._typing import PyTree
from ..flat import FlatScene, InstanceStack, intersect, occlusion
from ..rays import Ray
from ..rows import count_scalars
from ._irradiance import mirrors


# With more surfaces times the shadow rays of each, nothing is traced to find out the size; one or
# two surfaces may be under a panorama.
_MOST_PAIRS, _FEW = 48, 2
# The most numbers of an array of a shape that rows of lists have copies of.
_LARGE = 64
# What a part computes by a shadow ray, whatever occluders there are.
_LIT = 170


def ray_size(scene: FlatScene, layers: int) -> int | None:
    """Estimates the number of scalars that one ray computes, shadows of all on all included.

    `None` stands for more than is worth finding out.
    """
    surfaces, directions = sum(stack.count for stack in scene.occluders), _count(scene.lights)
    if surfaces > _FEW and surfaces * (1 + surfaces * directions) > _MOST_PAIRS:
        return None
    kinds = [(stack, _sizes_of(*stack.outline())) for stack in scene.occluders]
    parts = sum(stack.count * size.parts for stack, size in kinds)
    shadows = sum(stack.count * size.shadow for stack, size in kinds)
    # Shadows cast by all others, and by oneself unless one is convex, on every layer.
    lit = [stack.count * size.parts * (_LIT + shadows - _own(stack, size)) for stack, size in kinds]
    total = directions * sum(lit) * min(layers, parts) // max(parts, 1)
    return total + sum(stack.count * size.hits for stack, size in kinds)


def is_of_large_shapes(scene: FlatScene) -> bool:
    """Returns true for one or two surfaces of which a shape has many numbers, such as a grid.

    Rows of lists have a copy each of what they are tested against, number by number.
    """
    few = sum(stack.count for stack in scene.occluders) <= _FEW
    return few and any(_largest(*stack.outline()) > _LARGE for stack in scene.occluders)


def _largest(structure: Any, leaves: tuple) -> int:
    """Returns the most numbers that one array of a shape has."""
    shape = jax.tree.unflatten(structure, leaves).node.shape
    return max((math.prod(x.shape) for x in jax.tree.leaves(shape) if _is_array(x)), default=0)


def _is_array(leaf: Any) -> bool:
    return isinstance(leaf, jax.ShapeDtypeStruct)


class _Sizes(NamedTuple):
    """Parts of a surface, and scalars of its program for one ray."""

    parts: int
    hits: int  # scalars of the hits on all parts
    shadow: int  # scalars of the shadow


def _own(stack: InstanceStack, size: _Sizes) -> int:
    """Returns the scalars of the shadow of a surface on itself, where it is left out."""
    alone = stack.shared.node.shape.is_convex and stack.known_number() is not None
    return size.shadow if alone else 0


@functools.lru_cache(256)
def _sizes_of(structure: Any, leaves: tuple) -> _Sizes:
    """Counts for surfaces of one structure, which takes a trace."""
    arrays, rest = _split(structure, leaves)
    meet = lambda arrays, ray: intersect(eqx.combine(arrays, rest), ray)
    stop = lambda arrays, ray: occlusion(eqx.combine(arrays, rest), ray, jnp.zeros((), jnp.int32))
    # From numpy, because JAX would compile a program for every array.
    ray = Ray(*np.zeros((3, 3)), *np.zeros((2, 2, 3)), near=np.ones(()), far=np.ones(()))
    hits, found = count_scalars(meet, arrays, ray)
    return _Sizes(found.t.shape[0], hits, count_scalars(stop, arrays, ray)[0])


def count_directions(scene: FlatScene) -> int:
    """Counts the shadow rays from a point to panoramas."""
    return _count([stack for stack in scene.lights if mirrors(stack)])


def count_samples(scene: FlatScene) -> int:
    """Counts the shadow rays from a point to all lights."""
    return _count(scene.lights)


def _count(lights: Sequence[InstanceStack]) -> int:
    return sum(stack.count * _directions_of(*stack.outline()) for stack in lights)


@functools.lru_cache(256)
def _directions_of(structure: Any, leaves: tuple) -> int:
    """Returns the number of shadow rays to a light of some structure."""
    arrays, rest = _split(structure, leaves)
    sample = lambda arrays, *at: eqx.combine(arrays, rest).node.sample(*at).irradiance
    dtype = jnp.result_type(float)
    at = (jax.ShapeDtypeStruct(shape, dtype) for shape in ((3,), (2, 3)))
    return jax.eval_shape(sample, arrays, *at).shape[0]


def _split(structure: Any, leaves: tuple) -> tuple[PyTree, PyTree]:
    """Splits an outline into arrays and the rest."""
    outline = jax.tree.unflatten(structure, leaves)
    return eqx.partition(outline, lambda x: isinstance(x, jax.ShapeDtypeStruct))
