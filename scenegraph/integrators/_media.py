"""The media at samples along many rays: few volumes are queried everywhere, many where they may be.

Many volumes are queried block by block. A block holds consecutive samples of consecutive rays, and
queries only the volumes whose bounds one of its rays meets there.
"""

import dataclasses
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Key

from .._typing import Array, Bool, Float, Int, PyTree, RandomKey, UInt32
from ..compositing import (
    amounts,
    composite,
    composite_with_layers,
    mixture,
    with_media_details,
    with_unit_normals,
)
from ..flat import (
    FlatScene,
    Instance,
    InstanceStack,
    is_occupied,
    medium_of,
    prepare_of,
    proposal_of,
    span_of,
)
from ..numerics import count_bits, pack_bits, sum_to_nth_bit
from ..rays import Layers, Medium, Radiance, Ray, Section, Span
from ..rowwise import sum_blocks
from ._base import MediaAlong
from ._sample_blocks import SampleBlocks


# Stacks of fewer volumes are queried at every sample. Measured: from here on, lists are faster.
_FEW = 4


class Samples(NamedTuple):
    """Samples along rays."""

    rays: Ray  # "rays"
    sections: Section  # "rays samples"
    keys: Key[Array, "rays samples"] | None = None


def has_many_volumes(scene: FlatScene) -> bool:
    """Returns true if blocks of samples search for their volumes."""
    return any(stack.count > _FEW for stack in scene.volumes)


def _split(scene: FlatScene) -> tuple[FlatScene, tuple[InstanceStack, ...]]:
    """Returns the scene with its stacks of few volumes, and the stacks of many."""
    few = tuple(stack for stack in scene.volumes if stack.count <= _FEW)
    many = tuple(stack for stack in scene.volumes if stack.count > _FEW)
    return eqx.tree_at(lambda flat: flat.volumes, scene, few), many


def prepare(scene: FlatScene, rays: Ray) -> PyTree:
    """Computes what all samples of a ray share, for `media_at` and `proposals_at`."""
    return jax.vmap(_split(scene)[0].prepare)(rays)


def media_at(
    scene: FlatScene, samples: Samples, prepared: PyTree, *, normal: bool = False
) -> Medium:
    """Returns the media at samples, with leading axes over rays and samples."""
    few, many = _split(scene)
    at = lambda section, ready, key: few.medium(section, ready, key=key, normal=normal)
    medium = _map_samples(at, samples, prepared)
    if many:
        query = partial(_query_medium, linear=bool(scene.lights), normal=normal)
        listed = _sum_volumes(query, many, samples, _ends(samples.sections))
        # Amounts add; only their sum becomes a medium.
        both = (amounts(medium), listed) if few.volumes else (listed,)
        medium = mixture(jax.tree.map(lambda *xs: sum(xs), *both))
    return with_unit_normals(medium)


def proposals_at(scene: FlatScene, samples: Samples, prepared: PyTree) -> Medium:
    """Returns the densities of the volumes' proposals at samples, without colours."""
    few, many = _split(scene)
    at = lambda section, ready, key: few.propose(section, ready)
    density = _map_samples(at, samples, prepared)
    if many:
        density = density + _sum_volumes(_query_proposal, many, samples, _ends(samples.sections))
    return Medium(density, jnp.zeros((*density.shape, 3), density.dtype))


def occupied_at(scene: FlatScene, rays: Ray, parts: Span) -> Bool[Array, "rays parts"]:
    """Returns false for the parts of rays that are known to be empty."""
    few, many = _split(scene)
    occupied = jax.vmap(jax.vmap(few.occupied, (None, 0)))(rays, parts)
    if many:
        occupied |= _sum_volumes(_query_occupied, many, (rays, parts), parts) > 0
    return occupied


def thickness_at(scene: FlatScene, rays: Ray, parts: Span) -> Float[Array, "rays parts"]:
    """Returns the optical depth of parts of rays that the occupancies of few volumes know of."""
    few, _ = _split(scene)
    return jax.vmap(jax.vmap(few.thickness, (None, 0)))(rays, parts)


def composite_along(
    along: MediaAlong, rays: Ray, layers: Layers | None, outputs: tuple[str, ...]
) -> Radiance:
    """Composites the media of rays, among layers of surfaces if there are any."""
    overflow = along.overflow
    if layers is None:
        radiance = jax.vmap(composite)(along.medium, along.edges, rays.direction)
        radiance = details_of_media(radiance, rays, outputs)
    else:
        radiance = jax.vmap(composite_with_layers)(along.medium, along.edges, rays, layers)
        overflow = layers.overflow if overflow is None else overflow + layers.overflow
    return dataclasses.replace(radiance, overflow=overflow, requested=along.requested)


def details_of_media(radiance: Radiance, rays: Ray, outputs: tuple[str, ...]) -> Radiance:
    """Adds what is requested of rays on which there are media alone."""
    add = partial(with_media_details, outputs=outputs)
    return jax.vmap(add)(radiance, rays) if outputs else radiance


def _ends(sections: Section) -> Span:
    return Span(sections.t0, sections.t1)


def _map_samples(function: Callable, samples: Samples, prepared: PyTree) -> PyTree:
    """Maps over all samples of all rays.

    Rays and samples share one axis, so that a network is one matrix product.
    """
    shape = samples.sections.t0.shape
    flat = lambda x: x.reshape(-1, *x.shape[2:])
    repeat = lambda x: flat(jnp.broadcast_to(x[:, None], (*shape, *x.shape[1:])))
    rows = jax.tree.map(flat, samples.sections), jax.tree.map(repeat, prepared)
    keys = None if samples.keys is None else flat(samples.keys)
    results = jax.vmap(function)(*rows, keys)
    return jax.tree.map(lambda x: x.reshape(*shape, *x.shape[1:]), results)


def _query_medium(instance: Instance, *block: PyTree, linear: bool, normal: bool) -> PyTree:
    """Returns what a volume adds to the `amounts` of a block of samples."""
    samples = Samples(*block)

    def at(section: Section, ready: PyTree, key: RandomKey | None) -> PyTree:
        return amounts(medium_of(instance, ready, section, linear=linear, key=key, normal=normal))

    return _map_samples(at, samples, jax.vmap(partial(prepare_of, instance))(samples.rays))


def _query_proposal(instance: Instance, *block: PyTree) -> Float[Array, "rays samples"]:
    samples = Samples(*block)
    at = lambda section, ready, key: proposal_of(instance, ready, section)
    return _map_samples(at, samples, jax.vmap(partial(prepare_of, instance))(samples.rays))


def _query_occupied(instance: Instance, rays: Ray, parts: Span) -> Int[Array, "rays parts"]:
    one = jax.vmap(partial(is_occupied, instance), (None, 0))
    return jax.vmap(one)(rays, parts).astype(jnp.int32)


def _sum_volumes(
    query: Callable[..., PyTree],
    stacks: Sequence[InstanceStack],
    rows: tuple,
    parts: Span,
) -> PyTree:
    """Sums a query of volumes at blocks of samples, over those that blocks may touch.

    `rows` are rays, and trees of what samples have; `parts` are the samples' parts of rays.
    """
    blocks = SampleBlocks(*parts.near.shape)
    touched = [_touched(stack, blocks, rows[0], parts) for stack in stacks]

    def one_block(block: tuple, unpack: Callable[[Array], PyTree], lists: list) -> PyTree:
        at_block = lambda instance, rays, samples: query(instance, unpack(rays), *samples)
        sums = [
            _sum_listed(at_block, stack, block, listed)
            for stack, listed in zip(stacks, lists, strict=True)
        ]
        return jax.tree.map(lambda *xs: sum(xs), *sums)

    return blocks.map(one_block, rows[0], rows[1:], touched)


def _sum_listed(
    query: Callable, stack: InstanceStack, block: tuple, listed: UInt32[Array, " words"]
) -> PyTree:
    def one(shared: tuple[InstanceStack, tuple, Array], rank: Int[Array, ""]) -> PyTree:
        stack, block, listed = shared
        return query(stack.at(sum_to_nth_bit(listed, rank)), *block)

    ranks, count = jnp.arange(stack.count), jnp.sum(count_bits(listed))
    return sum_blocks(one, (stack, block, listed), ranks, count)


def _touched(
    stack: InstanceStack, blocks: SampleBlocks, rays: Ray, parts: Span
) -> UInt32[Array, "blocks words"]:
    """Returns which volumes of a stack the blocks may touch, a bit for each."""
    stack, rays, parts = jax.lax.stop_gradient((stack, rays, parts))
    spans = jax.vmap(lambda ray: stack.map(partial(span_of, ray=ray)))(rays)
    hit = spans.far > spans.near
    near, far = jnp.where(hit, spans.near, jnp.inf), jnp.where(hit, spans.far, -jnp.inf)
    near, far = _extent(blocks.bundles(near), blocks.bundles(far), (1,))
    begin, end = _extent(blocks.runs_of(parts.near), blocks.runs_of(parts.far), (1, 3))
    # A part that only touches the bounds has no share in them.
    touched = (near[:, None] <= end[..., None]) & (far[:, None] >= begin[..., None])
    return jax.vmap(pack_bits)(touched.reshape(-1, stack.count))


def _extent(near: Array, far: Array, axes: tuple[int, ...]) -> tuple[Array, Array]:
    """Returns the least near and the largest far end along axes, in one pass."""
    wider = lambda one, other: (jnp.minimum(one[0], other[0]), jnp.maximum(one[1], other[1]))
    nothing = jnp.asarray(jnp.inf, near.dtype), jnp.asarray(-jnp.inf, near.dtype)
    return jax.lax.reduce((near, far), nothing, wider, axes)
