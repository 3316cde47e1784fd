import dataclasses
from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Key

from .._typing import Array, Bool, Float, Int, PyTree, RandomKey
from ..compositing import composite_packed, composite_with_layers, packed_details
from ..numerics import AbstractModule, safe_norm
from ..rays import AbstractBeam, ConeBeam, Layers, Medium, Radiance, Ray, Section, Span
from ..scene import Scene
from ._base import AbstractMediaIntegrator
from ._hierarchical import fold
from ._rounds import Answer, ask_in_rounds, Listed, Samples, worth_asking


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
    - `rounds`: in how many rounds the samples of a ray are asked, from front to back, each with an
      equal part of the room. After each, rays that are opaque want no more. It pays where much
      is hidden, or a sample costs much.
    - `opaque`: the opacity from which on a ray wants no more, where there are several rounds.

    **Source:** Müller et al. 2022, "Instant neural graphics primitives", appendix E.
    """

    candidates: int = eqx.field(static=True, default=128)
    budget: int = eqx.field(static=True, default=16)
    step: float = eqx.field(static=True, default=0.0)
    beam: AbstractBeam = ConeBeam()
    rounds: int = eqx.field(static=True, default=1)
    opaque: float = eqx.field(static=True, default=0.999)

    def __check_init__(self):
        if self.candidates < 2:  # Jitter takes one away.
            raise ValueError(f"`candidates` must be at least 2; got {self.candidates}.")
        if not 1 <= self.budget <= self.candidates:
            raise ValueError(
                f"`budget` must be between 1 and `candidates`, which is {self.candidates}; got "
                f"{self.budget}."
            )
        if self.rounds < 1:
            raise ValueError(f"`rounds` must be at least 1; got {self.rounds}.")
        if not 0 < self.opaque <= 1:
            raise ValueError(f"`opaque` must be above 0 and at most 1; got {self.opaque}.")

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
        steps = worth_asking(self._occupied(scene, rays, march))
        ask = self._asker(scene, rays, march, fold(keys, 1))
        room = -(-self.budget * rays.near.shape[0] // self.rounds)
        answer = ask_in_rounds(ask, steps, room, self.rounds, self.opaque)
        if layers is None:
            seen = _composite(answer, march, spans, self.candidates)
        else:
            seen = self._among(answer, rays, march, layers)
        missing = answer.missing if seen.overflow is None else answer.missing + seen.overflow
        return (dataclasses.replace(seen, overflow=missing, asked=answer.asked),)

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

    def _asker(
        self, scene: Scene, rays: Ray, march: March, keys: Array | None
    ) -> Callable[[Listed], Samples]:
        prepared, lengths = jax.vmap(scene.root.prepare)(rays), jax.vmap(safe_norm)(rays.direction)

        def one(ray: Ray, part: Span, prepared: PyTree, key: RandomKey | None) -> Medium:
            section = Section(self.beam(ray, part.near, part.far), part.near, part.far)
            return scene.root.medium(section, prepared, key=key)

        def ask(listed: Listed) -> Samples:
            own = jax.tree.map(lambda x: x[listed.ray], (rays, prepared, keys))
            parts = _parts(listed, march)
            medium = jax.vmap(one)(own[0], parts, own[1], _fold(own[2], listed.number))
            depth = medium.density * (parts.far - parts.near) * lengths[listed.ray]
            return Samples(medium, jnp.where(listed.valid, depth, 0))

        return ask

    def _among(self, answer: Answer, rays: Ray, march: March, layers: Layers) -> Radiance:
        """With surfaces: a row of steps for every ray, empty where nothing was asked."""
        listed, shape = answer.listed, (rays.near.shape[0], self.candidates)
        ray = jnp.where(listed.valid, listed.ray, shape[0])

        def spread(x: Array) -> Array:
            empty = jnp.zeros((*shape, *x.shape[1:]), x.dtype)
            return empty.at[ray, listed.number].set(x, mode="drop")

        edges = march.start[:, None] + march.step[:, None] * jnp.arange(self.candidates + 1)
        rows = jax.tree.map(spread, answer.samples.medium)
        return jax.vmap(composite_with_layers)(rows, edges, rays.direction, layers)


def _parts(listed: Listed, march: March) -> Span:
    own = jax.tree.map(lambda x: x[listed.ray], march)
    return jax.vmap(March.part)(own, listed.number)


def _fold(keys: Array | None, numbers: Array) -> Array | None:
    return None if keys is None else jax.vmap(jax.random.fold_in)(keys, numbers)


def _composite(answer: Answer, march: March, spans: Span, most: int) -> Radiance:
    ray, depth, medium = answer.listed.ray, answer.samples.optical_depth, answer.samples.medium
    parts = _parts(answer.listed, march)
    middles = (parts.near + parts.far) / 2
    seen = composite_packed(medium, depth, middles, ray, spans, most=most)
    if medium.normal is None:
        return seen
    return packed_details(seen, medium.normal, depth, parts, ray, most=most)
