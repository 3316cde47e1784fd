import dataclasses
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Key

from .._typing import Array, Float, PyTree
from .._words import describe
from ..compositing import amounts, mixture, with_unit_normals
from ..flat import FlatScene, InstanceStack
from ..rays import Layers, Medium, Radiance, Ray
from ._base import AbstractMediaIntegrator, MediaAlong
from ._details import need_normals
from ._guided import Guided
from ._hierarchical import Hierarchical
from ._media import composite_along
from ._occupancy_march import next_budget, OccupancyMarch


# Steps along a ray, at least, and by the cells along an axis of an occupancy.
_STEPS, _BY_CELLS = 128, 2


class PerVolume(AbstractMediaIntegrator):
    """Integrates every volume that has an integrator by that, and all others together.

    What is sampled of each is merged, so that volumes that do not overlap look as each one does
    alone.
    """

    # Fields stand for the abstract properties: the least budget of integrators that have one, and
    # the number of samples of all.
    budget: int | None = eqx.field(static=True, default=None)  # pyright: ignore[reportIncompatibleMethodOverride]
    samples_per_ray: int = eqx.field(static=True, default=1)  # pyright: ignore[reportIncompatibleMethodOverride]
    # The integrators with fixed sample positions, in the order of `_groups`.
    fixed: tuple[PyTree, ...] | None = None

    def with_budget(self, samples: float) -> "PerVolume":
        if self.budget is None:
            return self
        return dataclasses.replace(self, budget=next_budget(samples))

    def with_fixed_samples(
        self, scene: FlatScene, rays: Ray, layers: Layers | None = None
    ) -> "PerVolume":
        fix = lambda own, alone: own.with_fixed_samples(alone, rays, layers)
        return dataclasses.replace(self, fixed=tuple(self._map(fix, scene)))

    def __call__(
        self,
        scene: FlatScene,
        rays: Ray,
        layers: Layers | None = None,
        *,
        keys: Key[Array, " rays"] | None = None,
        outputs: tuple[str, ...] = (),
    ) -> tuple[Radiance, ...]:
        along = self.media_along(scene, rays, layers, keys=keys, normal=need_normals(outputs))
        return (composite_along(along, rays, layers, outputs),)

    def media_along(
        self,
        scene: FlatScene,
        rays: Ray,
        layers: Layers | None = None,
        *,
        keys: Key[Array, " rays"] | None = None,
        normal: bool = False,
    ) -> MediaAlong:
        def sample(own: AbstractMediaIntegrator, alone: FlatScene) -> MediaAlong:
            return own.media_along(alone, rays, layers, keys=keys, normal=normal)

        return merge_media(self._map(sample, scene))

    def _map(
        self, function: Callable[[AbstractMediaIntegrator, FlatScene], PyTree], scene: FlatScene
    ) -> list[PyTree]:
        """Applies a function to integrators and scenes of what each one samples.

        Results have a leading axis over the volumes of a stack.
        """
        fixed = self.fixed or (None,) * len(scene.volumes)
        groups = zip(_groups(scene), fixed, strict=False)
        return [self._map_group(function, scene, stacks, known) for stacks, known in groups]

    def _map_group(
        self,
        function: Callable[[AbstractMediaIntegrator, FlatScene], PyTree],
        scene: FlatScene,
        stacks: tuple[InstanceStack, ...],
        known: PyTree,
    ) -> PyTree:
        chosen = own_integrator(stacks[0].first().node)
        own = Hierarchical() if chosen is None else self._with_own_budget(chosen)

        def one(stacks: tuple[InstanceStack, ...], fixed: PyTree) -> PyTree:
            alone = eqx.tree_at(lambda flat: flat.volumes, scene, stacks)
            return function(own if fixed is None else fixed, alone)

        first = lambda tree: jax.tree.map(lambda x: x[0], tree)
        widen = lambda tree: jax.tree.map(lambda x: x[None], tree)
        if chosen is None or stacks[0].count == 1:
            return widen(one(stacks, first(known)))
        members, static = eqx.partition(stacks[0].members, eqx.is_array)

        def each(row: Any) -> PyTree:
            member = eqx.combine(widen(row[0]), static)
            return one((InstanceStack(member, stacks[0].shared),), row[1])

        return jax.lax.map(each, (members, known))

    def _with_own_budget(self, own: AbstractMediaIntegrator) -> Any:
        if own.budget is None or self.budget is None or self.budget <= own.budget:
            return own
        return own.with_budget(self.budget)


def _groups(scene: FlatScene) -> list[tuple[InstanceStack, ...]]:
    """Returns stacks of volumes with an integrator, one by one, and all others together."""
    alone = [own_integrator(stack.first().node) is not None for stack in scene.volumes]
    pairs = list(zip(scene.volumes, alone, strict=True))
    rest = tuple(stack for stack, own in pairs if not own)
    return [(stack,) for stack, own in pairs if own] + ([rest] if rest else [])


def own_integrator(volume: Any) -> Any:
    """Returns a volume's integrator, or one that its occupancy guides; `None` without either."""
    if volume.integrator is not None:
        return volume.integrator
    if volume.occupancy is None:
        return None
    cells = max(jax.tree.leaves(volume.occupancy)[0].shape[-3:])
    steps = max(_STEPS, _BY_CELLS * cells)
    if volume.contraction is not None:
        return Guided(candidates=steps)
    # With space for all steps nothing is left out, and none is computed that is not used.
    return OccupancyMarch(steps, steps)


def media_of_volumes(volumes: Iterable[tuple[Any, int]]) -> AbstractMediaIntegrator:
    """Returns the integrator of volumes, given with the numbers of their copies."""
    owns = [(_checked(own_integrator(volume)), count) for volume, count in volumes]
    known = [(own, count) for own, count in owns if own is not None]
    if not known:
        return Hierarchical()
    if len(owns) == 1 and owns[0][1] == 1:
        return known[0][0]
    budgets = [own.budget for own, _ in known if own.budget is not None]
    samples = sum(own.samples_per_ray * count for own, count in known)
    if len(known) < len(owns):
        samples += Hierarchical().samples_per_ray
    return PerVolume(min(budgets, default=None), samples)


def _checked(own: Any) -> AbstractMediaIntegrator | None:
    """Refuses what does not integrate media."""
    if own is None or isinstance(own, AbstractMediaIntegrator):
        return own
    raise TypeError(
        f"the `integrator` of a Volume must be one of media, such as `Hierarchical`, `Guided` or "
        f"`OccupancyMarch`; got {describe(own)}."
    )


def merge_media(parts: Sequence[MediaAlong]) -> MediaAlong:
    """Merges what was sampled of volumes apart; every part has a leading axis over volumes.

    A medium is the same all over each of its intervals, so sums of them are the same between any
    two neighbouring edges, and a volume that is alone on a ray keeps its picture.
    """
    rows = [jnp.moveaxis(part.edges, 0, 1) for part in parts]
    edges = jnp.concatenate([x.reshape(x.shape[0], -1) for x in rows], axis=1)
    edges = jnp.sort(edges, axis=1)
    # sigma(t) = sum_v sigma_v(t), and rgb is the mean of rgb_v in proportion to sigma_v(t).
    sums = [_sum_between(part, edges) for part in parts]
    medium = with_unit_normals(mixture(jax.tree.map(lambda *xs: sum(xs), *sums)))
    missing = [jnp.sum(x.overflow, axis=0) for x in parts if x.overflow is not None]
    requested = [jnp.max(x.requested, axis=0) for x in parts if x.requested is not None]
    return MediaAlong(
        medium,
        edges,
        sum(missing[1:], missing[0]) if missing else None,
        # Every volume has the same budget.
        jnp.max(jnp.stack(requested), axis=0) if requested else None,
    )


def _sum_between(part: MediaAlong, edges: Float[Array, "rays edges"]) -> PyTree:
    """Returns the sum of the `amounts` of volumes between neighbouring edges."""
    each = jax.vmap(jax.vmap(_between), (0, 0, None))(part.medium, part.edges, edges[:, :-1])
    return jax.tree.map(lambda x: jnp.sum(x, axis=0), each)


def _between(
    medium: Medium, edges: Float[Array, " edges"], begins: Float[Array, " parts"]
) -> PyTree:
    """Returns the `amounts` of one volume in parts of a ray that begin at given places."""
    place = jnp.searchsorted(edges, begins, side="right") - 1
    last = medium.density.shape[0] - 1
    inside = (place >= 0) & (place <= last)
    here: Medium = jax.tree.map(lambda x: x[jnp.clip(place, 0, last)], medium)
    normal = None if here.normal is None else jnp.where(inside[:, None], here.normal, 0)
    return amounts(Medium(jnp.where(inside, here.density, 0), here.rgb, normal))
