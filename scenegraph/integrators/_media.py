"""The media at samples along many rays: few volumes are queried everywhere, many where they may be.

Many volumes are queried block by block. A block holds consecutive samples of consecutive rays, and
queries only the volumes whose bounds one of its rays meets there.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Key

from .._typing import Array, Bool, Float, Int, PyTree, RandomKey
from ..compositing import amounts, mixture, with_unit_normals
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
from ..numerics import choose_block, compact
from ..rays import Medium, Ray, Section, Span
from ..rowwise import sum_blocks


# Stacks of fewer volumes are queried at every sample. Measured: from here on, lists are faster.
_FEW = 4
# Samples in a block, and consecutive ones of one ray among them.
_BLOCK = 1024
_RUN = 16


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


def _query_medium(instance: Instance, samples: Samples, *, linear: bool, normal: bool) -> PyTree:
    """Returns what a volume adds to the `amounts` of a block of samples."""

    def at(section: Section, ready: PyTree, key: RandomKey | None) -> PyTree:
        return amounts(medium_of(instance, ready, section, linear=linear, key=key, normal=normal))

    return _map_samples(at, samples, jax.vmap(partial(prepare_of, instance))(samples.rays))


def _query_proposal(instance: Instance, samples: Samples) -> Float[Array, "rays samples"]:
    at = lambda section, ready, key: proposal_of(instance, ready, section)
    return _map_samples(at, samples, jax.vmap(partial(prepare_of, instance))(samples.rays))


def _query_occupied(instance: Instance, rows: tuple[Ray, Span]) -> Int[Array, "rays parts"]:
    one = jax.vmap(partial(is_occupied, instance), (None, 0))
    return jax.vmap(one)(*rows).astype(jnp.int32)


def _sum_volumes(
    query: Callable[[Instance, PyTree], PyTree],
    stacks: Sequence[InstanceStack],
    rows: tuple,
    parts: Span,
) -> PyTree:
    """Sums a query of volumes at blocks of samples, over those that blocks may touch.

    `rows` are rays, and trees of what samples have; `parts` are the samples' parts of rays.
    """
    blocks = _Blocks(*parts.near.shape)
    touched = [_touched(stack, blocks, rows[0], parts) for stack in stacks]

    def one_block(row: tuple) -> PyTree:
        block, lists = row
        sums = [
            _sum_listed(query, stack, block, listed)
            for stack, listed in zip(stacks, lists, strict=True)
        ]
        return jax.tree.map(lambda *xs: sum(xs), *sums)

    own = blocks.of_rays(rows[0]), *(blocks.of_samples(x) for x in rows[1:])
    same = Samples(*own) if isinstance(rows, Samples) else own
    return blocks.restore(jax.lax.map(one_block, (same, touched)))


def _sum_listed(
    query: Callable, stack: InstanceStack, block: PyTree, listed: Bool[Array, " members"]
) -> PyTree:
    def one(shared: tuple[InstanceStack, PyTree], place: Int[Array, ""]) -> PyTree:
        stack, block = shared
        return query(stack.at(place), block)

    return sum_blocks(one, (stack, block), compact(listed, stack.count).indices, jnp.sum(listed))


class _Blocks(NamedTuple):
    """The division of `rays samples` into blocks of about `_BLOCK`."""

    rays: int
    samples: int

    @property
    def run(self) -> int:
        """Samples of one ray in a block."""
        return min(_RUN, self.samples)

    @property
    def bundle(self) -> int:
        """Rays in a block."""
        return choose_block(_BLOCK) // self.run

    @property
    def runs(self) -> int:
        """Blocks along a ray."""
        return -(-self.samples // self.run)

    def of_rays(self, tree: PyTree) -> PyTree:
        """Returns what rays have, by blocks: `blocks bundle`."""
        bundles = jax.tree.map(self.bundles, tree)
        return jax.tree.map(lambda x: jnp.repeat(x, self.runs, axis=0), bundles)

    def of_samples(self, tree: PyTree) -> PyTree:
        """Returns what samples have, by blocks: `blocks bundle run`."""

        def one(x: Array) -> Array:
            # From (bundles, bundle, runs, run) to (bundles, runs, bundle, run), blocks being last.
            x = jnp.swapaxes(self.runs_of(x), 1, 2)
            return x.reshape(-1, self.bundle, self.run, *x.shape[4:])

        return jax.tree.map(one, tree)

    def runs_of(self, x: Array) -> Array:
        """Returns what samples have as `bundles bundle runs run`."""
        x = self.bundles(_repeat_last(x, self.runs * self.run, axis=1))
        return x.reshape(*x.shape[:2], self.runs, self.run, *x.shape[3:])

    def restore(self, tree: PyTree) -> PyTree:
        """Returns what blocks have of samples, by rays and samples."""

        def one(x: Array) -> Array:
            x = x.reshape(-1, self.runs, self.bundle, self.run, *x.shape[3:])
            x = jnp.swapaxes(x, 1, 2)
            x = x.reshape(-1, self.runs * self.run, *x.shape[4:])
            return x[: self.rays, : self.samples]

        return jax.tree.map(one, tree)

    def bundles(self, x: Array) -> Array:
        """Returns what rays have as `bundles bundle`."""
        x = _repeat_last(x, -(-self.rays // self.bundle) * self.bundle, axis=0)
        return x.reshape(-1, self.bundle, *x.shape[1:])


def _repeat_last(x: Array, length: int, axis: int) -> Array:
    """Repeats the last entry along an axis until it is long enough."""
    if x.shape[axis] == length:
        return x
    return jnp.take(x, jnp.minimum(jnp.arange(length), x.shape[axis] - 1), axis=axis)


def _touched(
    stack: InstanceStack, blocks: _Blocks, rays: Ray, parts: Span
) -> Bool[Array, "blocks members"]:
    """Returns which volumes of a stack the blocks may touch."""
    stack, rays, parts = jax.lax.stop_gradient((stack, rays, parts))
    spans = jax.vmap(lambda ray: stack.map(partial(span_of, ray=ray)))(rays)
    hit = spans.far > spans.near
    near = jnp.min(blocks.bundles(jnp.where(hit, spans.near, jnp.inf)), axis=1)
    far = jnp.max(blocks.bundles(jnp.where(hit, spans.far, -jnp.inf)), axis=1)
    begin = jnp.min(blocks.runs_of(parts.near), axis=(1, 3))
    end = jnp.max(blocks.runs_of(parts.far), axis=(1, 3))
    # A part that only touches the bounds has no share in them.
    touched = (near[:, None] <= end[..., None]) & (far[:, None] >= begin[..., None])
    return touched.reshape(-1, stack.count)
