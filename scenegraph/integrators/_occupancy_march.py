import dataclasses
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Key

from .._typing import Array, Bool, Float, Int, PyTree, RandomKey
from ..compositing import composite_among, composite_listed, listed_details
from ..numerics import AbstractModule, compact, safe_norm
from ..rays import AbstractBeam, Cone, Layers, Medium, Radiance, Ray, Section, Span
from ..scene import Scene
from ._base import AbstractMediaIntegrator
from ._hierarchical import fold


class March(AbstractModule):
    """The even steps of a ray.

    **Arguments:**

    - `start`: where the first begins, in `t`.
    - `step`: their length, in `t`.
    """

    start: Float[Array, "*rays"]
    step: Float[Array, "*rays"]

    def part(self, number: Int[Array, ""]) -> Span:
        """One step.

        **Arguments:**

        - `number`: which.

        **Returns:**

        Its ends.
        """
        return Span(self.start + number * self.step, self.start + (number + 1) * self.step)


class Listed(AbstractModule):
    """The samples that are worth asking, ray after ray, in a list of fixed length.

    **Arguments:**

    - `ray`, `number`: which step of which ray a place of the list holds.
    - `valid`: which places are used.
    - `asked`: how many steps of each ray are worth asking.
    - `complete`: whether all of them found room.
    """

    ray: Int[Array, " listed"]
    number: Int[Array, " listed"]
    valid: Bool[Array, " listed"]
    asked: Int[Array, " rays"]
    complete: Bool[Array, " rays"]


class OccupancyMarch(AbstractMediaIntegrator):
    """Goes along every ray in even steps, and asks only where the occupancy says something may be.

    All rays share one list of samples of fixed length. A ray whose samples do not all find room in
    it is left out whole, and counted in `Radiance.overflow`: `fit` leaves it out of the loss and
    goes on with more room, `render` renders again.

    **Arguments:**

    - `candidates`: most steps of a ray; at least 2.
    - `budget`: for how many samples a ray there is room, on average; with as many as `candidates`
      there always is.
    - `step`: their length in space; 0 for what makes `candidates` steps of what a ray sees, which
      is also the least.
    - `beam`: how wide rays are.

    **Source:** Müller et al. 2022, "Instant neural graphics primitives", appendix E.
    """

    candidates: int = eqx.field(static=True, default=128)
    budget: int = eqx.field(static=True, default=16)
    step: float = eqx.field(static=True, default=0.0)
    beam: AbstractBeam = Cone()

    def __check_init__(self):
        if self.candidates < 2:  # Jitter takes one away.
            raise ValueError(f"`candidates` must be at least 2; got {self.candidates}.")
        if not 1 <= self.budget <= self.candidates:
            raise ValueError(
                f"`budget` must be between 1 and `candidates`, which is {self.candidates}; got "
                f"{self.budget}."
            )

    @property
    def samples_per_ray(self) -> int:
        return self.budget

    def with_budget(self, budget: int) -> "OccupancyMarch":
        """The same with another budget.

        **Arguments:**

        - `budget`: as in `OccupancyMarch`; more than `candidates` is as much.

        **Returns:**

        The integrator.
        """
        return dataclasses.replace(self, budget=min(budget, self.candidates))

    def through(
        self,
        scene: Scene,
        rays: Ray,
        layers: Layers | None,
        *,
        keys: Key[Array, " rays"] | None = None,
    ) -> tuple[Radiance, ...]:
        spans = jax.vmap(scene.root.span)(rays)
        march = jax.vmap(self._march)(rays, spans, fold(keys, 0))
        listed = self._list(scene, rays, march)
        sections = _sections(self.beam, listed, rays, march)
        medium = _ask(scene, listed, rays, sections, fold(keys, 1))
        if layers is None:
            seen = _composite(medium, listed, rays, sections, spans, self.candidates)
        else:
            seen = self._among(medium, listed, rays, march, layers)
        missing = jnp.where(listed.complete, 0, listed.asked)
        overflow = missing if seen.overflow is None else missing + seen.overflow
        return (dataclasses.replace(seen, overflow=overflow, asked=listed.asked),)

    def asked(
        self, scene: Scene, rays: Ray, *, keys: Key[Array, " rays"] | None = None
    ) -> Int[Array, " rays"]:
        """How many samples of each ray are worth asking.

        **Arguments:**

        - `scene`, `rays`, `keys`: as in `__call__`.

        **Returns:**

        At most `candidates`.
        """
        spans = jax.vmap(scene.root.span)(rays)
        march = jax.vmap(self._march)(rays, spans, fold(keys, 0))
        return jnp.sum(self._occupied(scene, rays, march), axis=1)

    def _march(self, ray: Ray, span: Span, key: RandomKey | None) -> March:
        """Steps over a span, moved back by a random part of one."""
        length = jnp.maximum(span.far - span.near, 0) / (self.candidates - (key is not None))
        step = jnp.maximum(length, self.step / safe_norm(ray.direction))
        if key is None:
            return March(span.near, step)
        return March(span.near - jax.random.uniform(key, (), step.dtype) * step, step)

    def _occupied(self, scene: Scene, rays: Ray, march: March) -> Bool[Array, "rays candidates"]:
        numbers = jnp.arange(self.candidates)

        def one_ray(ray: Ray, march: March) -> Bool[Array, " candidates"]:
            return jax.vmap(lambda number: scene.root.occupied(ray, march.part(number)))(numbers)

        return jax.vmap(one_ray)(rays, march)

    def _list(self, scene: Scene, rays: Ray, march: March) -> Listed:
        occupied = self._occupied(scene, rays, march)
        asked = jnp.sum(occupied, axis=1)
        room = self.budget * occupied.shape[0]
        complete = jnp.cumsum(asked) <= room
        found = compact((occupied & complete[:, None]).reshape(-1), room)
        # Places that are not used count as of the last ray, so that the list stays in order.
        index = jnp.where(found.valid, found.indices, occupied.size - 1)
        ray, number = jnp.divmod(index, self.candidates)
        return Listed(ray, number, found.valid, asked, complete)

    def _among(
        self, medium: Medium, listed: Listed, rays: Ray, march: March, layers: Layers
    ) -> Radiance:
        """With surfaces: a row of steps for every ray, empty where nothing was asked."""
        shape = rays.near.shape[0], self.candidates
        ray = jnp.where(listed.valid, listed.ray, shape[0])

        def spread(x: Array) -> Array:
            empty = jnp.zeros((*shape, *x.shape[1:]), x.dtype)
            return empty.at[ray, listed.number].set(x, mode="drop")

        edges = march.start[:, None] + march.step[:, None] * jnp.arange(self.candidates + 1)
        rows = jax.tree.map(spread, medium)
        return jax.vmap(composite_among)(rows, edges, rays.direction, layers)


def _sections(beam: AbstractBeam, listed: Listed, rays: Ray, march: March) -> Section:
    def section(ray: Ray, march: March, number: Int[Array, ""]) -> Section:
        part = march.part(number)
        return Section(beam(ray, part.near, part.far), part.near, part.far)

    own_rays, own_march = _rows((rays, march), listed)
    return jax.vmap(section)(own_rays, own_march, listed.number)


def _ask(scene: Scene, listed: Listed, rays: Ray, sections: Section, keys: Array | None) -> Medium:
    prepared = _rows(jax.vmap(scene.root.prepare)(rays), listed)

    def ask(section: Section, prepared: PyTree, key: RandomKey | None) -> Medium:
        return scene.root.medium(section, prepared, key=key)

    own = None if keys is None else jax.vmap(jax.random.fold_in)(keys[listed.ray], listed.number)
    return jax.vmap(ask)(sections, prepared, own)


def _composite(
    medium: Medium, listed: Listed, rays: Ray, sections: Section, spans: Span, most: int
) -> Radiance:
    lengths = _rows(jax.vmap(safe_norm)(rays.direction), listed)
    depth = medium.density * (sections.t1 - sections.t0) * lengths
    middles = (sections.t0 + sections.t1) / 2
    depth = jnp.where(listed.valid, depth, 0)
    seen = composite_listed(medium, depth, middles, listed.ray, spans, most=most)
    if medium.normal is None:
        return seen
    parts = Span(sections.t0, sections.t1)
    return listed_details(seen, medium.normal, depth, parts, listed.ray, most=most)


def _rows(tree: Any, listed: Listed) -> Any:
    """What belongs to the ray of each place in the list."""
    return jax.tree.map(lambda x: x[listed.ray], tree)
