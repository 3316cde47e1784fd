import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Key

from .._typing import Array, PyTree, RandomKey, Scalar, UInt32
from ..compositing import composite_packed, packed_details
from ..flat import FlatScene
from ..numerics import choose_block, map_used_blocks, pack_bits, safe_norm
from ..rays import AbstractBeam, ConeBeam, Layers, Medium, Radiance, Ray, Section, Span
from ..scene import Pace
from ._base import AbstractMediaIntegrator, MediaAlong
from ._details import need_normals
from ._hierarchical import fold
from ._march import even_steps, March
from ._media import composite_along, details_of_media, media_at, occupied_at, prepare, Samples
from ._packed import pack_steps, PackedSteps


# Every one is compiled anew, but what is too much is computed in vain: about five to a doubling.
_BUDGETS = (4, 5, 6, 7, *(x << n for n in range(6) for x in (8, 9, 10, 12, 14)), 256)
_ALL = 2**30
# Entries of the list of samples that are evaluated, or left out, together.
_BLOCK = 2**12


def next_budget(samples: float) -> int:
    """Returns the least of a few budgets that serves; one of all samples beyond the largest."""
    return next((x for x in _BUDGETS if samples <= x), _ALL)


class OccupancyMarch(AbstractMediaIntegrator):
    """Ray marching in even steps that samples only where the occupancy is not empty.

    All rays share one list of samples of fixed length. A ray whose samples do not all find space in
    it is left out whole, and counted in `Radiance.overflow`: `fit` leaves it out of the loss and
    goes on with a larger budget, `render` renders again.

    **Arguments:**

    - `candidates`: the largest number of steps of a ray, at least 2; static.
    - `budget`: the number of samples a ray, on average, for which there is space; with as many as
      `candidates` nothing can overflow; static.
    - `step`: the length of a step in the frame of the volume, of several volumes in the largest
      of them; 0 for `candidates` steps over the part of a ray that holds media, which is also the
      least; static.
    - `beam`: the shape of rays.
    - `known`: the occupied steps of the rays, where they were looked up before, 32 to a word.

    **Source:** Müller et al. 2022, "Instant neural graphics primitives", appendix E.
    """

    candidates: int = eqx.field(static=True, default=128)
    # A field stands for the abstract property.
    budget: int = eqx.field(static=True, default=16)  # pyright: ignore[reportIncompatibleMethodOverride]
    step: float = eqx.field(static=True, default=0.0)
    beam: AbstractBeam = ConeBeam()
    known: UInt32[Array, "rays words"] | None = None

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

    def with_budget(self, samples: float) -> "OccupancyMarch":
        return dataclasses.replace(self, budget=min(next_budget(samples), self.candidates))

    def with_fixed_samples(
        self, scene: FlatScene, rays: Ray, layers: Layers | None = None
    ) -> "OccupancyMarch":
        del scene, rays, layers
        return self

    def __call__(
        self,
        scene: FlatScene,
        rays: Ray,
        layers: Layers | None = None,
        *,
        keys: Key[Array, " rays"] | None = None,
        outputs: tuple[str, ...] = (),
    ) -> tuple[Radiance, ...]:
        if layers is None:
            spans, march = self._steps(scene, rays, keys)
            normal = need_normals(outputs)
            medium, packed = self._sample_steps(scene, rays, march, keys, normal=normal)
            radiance = self._composite(medium, packed, march, rays, spans)
            radiance = details_of_media(radiance, rays, outputs)
            numbers = {"overflow": packed.missing, "requested": packed.requested}
            return (dataclasses.replace(radiance, **numbers),)
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
        del layers
        _, march = self._steps(scene, rays, keys)
        return self._unpacked(*self._sample_steps(scene, rays, march, keys, normal=normal), march)

    def find_steps(
        self, scene: FlatScene, rays: Ray, keys: Key[Array, " rays"] | None = None
    ) -> UInt32[Array, "rays words"]:
        """Looks up which steps are occupied, to be `known` when samples are taken.

        **Arguments:**

        - `scene`, `rays`, `keys`: the arguments of `__call__`.

        **Returns:**

        A bit for every step, 32 to a word, `rays words`; `Radiance.requested` is their number.
        """
        return self._occupied(scene, rays, self._steps(scene, rays, keys)[1])

    def _steps(
        self, scene: FlatScene, rays: Ray, keys: Key[Array, " rays"] | None
    ) -> tuple[Span, March]:
        """Returns the parts of the rays that hold media, and their division into steps."""
        spans = jax.vmap(scene.span)(rays)
        paces = jax.vmap(scene.pace)(rays)
        rates = jax.vmap(scene.rate)(rays)
        return spans, jax.vmap(self._march)(rates, spans, paces, fold(keys, 0))

    def _march(self, rate: Scalar, span: Span, pace: Pace | None, key: RandomKey | None) -> March:
        # One shift a ray, so that its steps stay even.
        shift = None if key is None else jax.random.uniform(key, (), span.near.dtype)
        return even_steps(span, pace, self.candidates, self.step / rate, shift)

    def _occupied(self, scene: FlatScene, rays: Ray, march: March) -> UInt32[Array, "rays words"]:
        """Returns a bit for every step, 32 to a word."""
        numbers = jnp.arange(self.candidates)
        parts = jax.vmap(jax.vmap(March.part, (None, 0)), (0, None))(march, numbers)
        return jax.vmap(pack_bits)(occupied_at(scene, rays, parts))

    def _sample_steps(
        self, scene: FlatScene, rays: Ray, march: March, keys: Array | None, *, normal: bool
    ) -> tuple[Medium, PackedSteps]:
        """Returns the media at the occupied steps, and which these are."""
        words = self._occupied(scene, rays, march) if self.known is None else self.known
        packed = pack_steps(words, self.candidates, self.budget * rays.near.shape[0])
        return self._sample(scene, rays, march, packed, fold(keys, 1), normal=normal), packed

    def _sample(
        self,
        scene: FlatScene,
        rays: Ray,
        march: March,
        packed: PackedSteps,
        keys: Array | None,
        *,
        normal: bool,
    ) -> Medium:
        """Returns the media at the packed steps."""
        shared = rays, prepare(scene, rays), keys, march

        def some(entries: tuple[Array, Array]) -> Medium:
            return self._sample_entries(scene, shared, *entries, normal=normal)

        return map_used_blocks(some, (packed.ray, packed.step), packed.valid, choose_block(_BLOCK))

    def _sample_entries(
        self, scene: FlatScene, shared: PyTree, ray: Array, step: Array, *, normal: bool
    ) -> Medium:
        """Returns the media at some steps of some rays."""
        own, prepared, keys, march = jax.tree.map(lambda x: x[ray], shared)
        keys = None if keys is None else jax.vmap(jax.random.fold_in)(keys, step)
        parts = jax.vmap(March.part)(march, step)
        sections = Section(jax.vmap(self.beam)(own, parts.near, parts.far), parts.near, parts.far)
        # One sample to each of these rays.
        sections, keys = jax.tree.map(lambda x: x[:, None], (sections, keys))
        medium = media_at(scene, Samples(own, sections, keys), prepared, normal=normal)
        return jax.tree.map(lambda x: x[:, 0], medium)

    def _composite(
        self, medium: Medium, packed: PackedSteps, march: March, rays: Ray, spans: Span
    ) -> Radiance:
        parts = _parts(packed, march)
        lengths = jax.vmap(safe_norm)(rays.direction)[packed.ray]
        # Optical depth of a step: density dt |direction|; none at unused entries.
        depth = jnp.where(packed.valid, medium.density * (parts.far - parts.near) * lengths, 0)
        middles, most = (parts.near + parts.far) / 2, self.candidates
        radiance = composite_packed(medium, depth, middles, packed.ray, spans, most=most)
        if medium.normal is None:
            return radiance
        return packed_details(radiance, medium.normal, depth, parts, packed.ray, most=most)

    def _unpacked(self, medium: Medium, packed: PackedSteps, march: March) -> MediaAlong:
        """Returns a row of steps for every ray, empty where nothing was sampled."""
        shape = march.start.shape[0], self.candidates
        # Unused entries go to a ray beyond the last, and are dropped.
        ray = jnp.where(packed.valid, packed.ray, shape[0])

        def unpack(x: Array) -> Array:
            empty = jnp.zeros((*shape, *x.shape[1:]), x.dtype)
            return empty.at[ray, packed.step].set(x, mode="drop")

        edges = jax.vmap(jax.vmap(March.edge, (None, 0)), (0, None))(
            march, jnp.arange(self.candidates + 1)
        )
        rows = jax.tree.map(unpack, medium)
        return MediaAlong(rows, edges, packed.missing, packed.requested)


def _parts(packed: PackedSteps, march: March) -> Span:
    own = jax.tree.map(lambda x: x[packed.ray], march)
    return jax.vmap(March.part)(own, packed.step)
