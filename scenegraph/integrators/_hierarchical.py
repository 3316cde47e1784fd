import dataclasses
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Key

from .._typing import Array, Float, RandomKey, Scalar
from ..compositing import composite, composite_with_layers
from ..flat import FlatScene
from ..numerics import safe_divide
from ..rays import AbstractBeam, ConeBeam, Layers, Medium, Radiance, Ray, Section, Span
from ..samplers import (
    AbstractSpacing,
    resample,
    resampling_weights,
    sample_edges,
    Uniform,
)
from ._base import AbstractMediaIntegrator, MediaAlong
from ._details import need_normals
from ._media import details_of_media, media_at, prepare, proposals_at, Samples


class Hierarchical(AbstractMediaIntegrator):
    """mip-NeRF's integrator: even samples first, then samples where the level before found density.

    All levels sample the same field; overlapping media add their densities.

    **Arguments:**

    - `samples`: the number of intervals of each level, coarse to fine; static.
    - `beam`: the shape of rays, `ConeBeam()` or `CylinderBeam()`.
    - `spacing`: the spacing of the first level's intervals.
    - `padding`: the constant added to weights before resampling; static.
    - `stop_gradient`: if true, the positions of finer levels are constants, as fractions of the
      part of the ray that holds media; static.
    - `empty_depth_near`: if true, a ray that meets nothing has the depth of its near end, as the
      published code computes it, instead of its far end; static.
    - `proposals`: if true, all levels but the last sample only the volumes' proposals, which have
      densities and no colours; `ProposalLoss` fits these to what the last level finds; static.
    - `fixed`: the bin edges of every level but the first, as fractions of the part of the ray that
      holds media; `None` to resample (`with_fixed_samples` sets it).

    **Source:** mip-NeRF (Barron et al. 2021), section 3; for proposals mip-NeRF 360 (Barron et al.
    2022), section 3.
    """

    samples: tuple[int, ...] = eqx.field(static=True, default=(64, 64))
    beam: AbstractBeam = ConeBeam()
    spacing: AbstractSpacing = Uniform()
    padding: float = eqx.field(static=True, default=0.01)
    stop_gradient: bool = eqx.field(static=True, default=True)
    empty_depth_near: bool = eqx.field(static=True, default=False)
    proposals: bool = eqx.field(static=True, default=False)
    fixed: tuple[Float[Array, "rays edges"], ...] | None = None

    def __check_init__(self):
        if not self.samples or min(self.samples) < 1:
            raise ValueError(f"every level needs at least one sample; got {self.samples}.")

    @property
    def budget(self) -> None:
        """None: every ray has samples of its own."""
        return None

    @property
    def samples_per_ray(self) -> int:
        return max(self.samples)

    def with_budget(self, samples: float) -> "Hierarchical":
        del samples
        return self

    def with_fixed_samples(
        self, scene: FlatScene, rays: Ray, layers: Layers | None = None
    ) -> "Hierarchical":
        if not self.stop_gradient:
            return self
        spans = jax.vmap(scene.span)(rays)
        # The first level's fractions are those of its spacing, whatever the scene.
        finer = self(scene, rays, layers)[1:]
        fractions = tuple(jax.vmap(_fractions)(level.edges, spans) for level in finer)
        return dataclasses.replace(self, fixed=fractions)

    def __call__(
        self,
        scene: FlatScene,
        rays: Ray,
        layers: Layers | None = None,
        *,
        keys: Key[Array, " rays"] | None = None,
        outputs: tuple[str, ...] = (),
    ) -> tuple[Radiance, ...]:
        levels = self._levels(scene, rays, layers, keys, normal=need_normals(outputs))
        radiances = tuple(level.radiance for level in levels)
        if layers is not None:
            return radiances
        return tuple(details_of_media(radiance, rays, outputs) for radiance in radiances)

    def media_along(
        self,
        scene: FlatScene,
        rays: Ray,
        layers: Layers | None = None,
        *,
        keys: Key[Array, " rays"] | None = None,
        normal: bool = False,
    ) -> MediaAlong:
        last = self._levels(scene, rays, layers, keys, normal=normal)[-1]
        return MediaAlong(last.medium, last.radiance.edges)

    def _levels(
        self,
        scene: FlatScene,
        rays: Ray,
        layers: Layers | None,
        keys: Array | None,
        *,
        normal: bool,
    ) -> "list[_Level]":
        """Samples level after level, each where the one before found density."""
        prepared, spans = prepare(scene, rays), jax.vmap(scene.span)(rays)
        levels: list[_Level] = []
        for level in range(len(self.samples)):
            edges = self._edges(level, levels, spans, keys)
            sections = jax.vmap(self._sections)(rays, edges)
            # Of a ray's key, 2 l is for the edges of level l, and 2 l + 1 for noise at its samples.
            own = sample_keys(fold(keys, 2 * level + 1), self.samples[level])
            samples = Samples(rays, sections, own)
            if self.proposals and level < len(self.samples) - 1:
                medium = proposals_at(scene, samples, prepared)
            else:
                medium = media_at(scene, samples, prepared, normal=normal)
            composited = jax.vmap(self._composite)(medium, edges, rays, layers)
            levels.append(_Level(medium, composited))
        return levels

    def _edges(
        self, level: int, before: "list[_Level]", spans: Span, keys: Array | None
    ) -> Float[Array, "rays edges"]:
        """Returns the bin edges of a level, in `t`."""
        if level == 0:
            return self._first_edges(spans, fold(keys, 0))
        if self.fixed is not None:
            near, far = spans.near[:, None], spans.far[:, None]
            return near + self.fixed[level - 1] * (far - near)
        return self._next_edges(
            before[-1].radiance, spans, self.samples[level], fold(keys, 2 * level)
        )

    def _first_edges(self, spans: Span, keys: Array | None) -> Float[Array, "rays edges"]:
        def one_ray(span: Span, key: RandomKey | None) -> Float[Array, " edges"]:
            return sample_edges(self.spacing, span.near, span.far, self.samples[0], key=key)

        return jax.vmap(one_ray)(spans, keys)

    def _next_edges(
        self, before: Radiance, spans: Span, count: int, keys: Array | None
    ) -> Float[Array, "rays edges"]:
        def one_ray(edges: Array, weights: Array, key: RandomKey | None) -> Array:
            return resample(edges, resampling_weights(weights, self.padding), count, key=key)

        edges = jax.vmap(one_ray)(before.edges, before.weights, keys)
        if not self.stop_gradient:
            return edges
        return jax.vmap(_keep_fractions)(jax.lax.stop_gradient(edges), spans)

    def _composite(
        self,
        medium: Medium,
        edges: Float[Array, " edges"],
        ray: Ray,
        layers: Layers | None,
    ) -> Radiance:
        if layers is not None:
            return composite_with_layers(medium, edges, ray, layers)
        return composite(medium, edges, ray.direction, empty_depth_near=self.empty_depth_near)

    def _sections(self, ray: Ray, edges: Float[Array, " edges"]) -> Section:
        def section(t0: Scalar, t1: Scalar) -> Section:
            return Section(self.beam(ray, t0, t1), t0, t1)

        return jax.vmap(section)(edges[:-1], edges[1:])


class _Level(NamedTuple):
    """The media of one level, and their radiance."""

    medium: Medium
    radiance: Radiance


@jax.custom_jvp
def _keep_fractions(edges: Float[Array, " edges"], span: Span) -> Float[Array, " edges"]:
    """Returns the edges, whose fractions of the span are constants: `t = n + f (far - near)`.

    The ends of the span may move; where they are constant, as in the published method, so is `t`.
    """
    del span
    return edges


@_keep_fractions.defjvp
def _keep_fractions_jvp(primals: tuple, tangents: tuple) -> tuple[Array, Array]:
    fraction = _fractions(*primals)
    # dt = (1 - f) dnear + f dfar
    return primals[0], (1 - fraction) * tangents[1].near + fraction * tangents[1].far


def _fractions(edges: Float[Array, " edges"], span: Span) -> Float[Array, " edges"]:
    """Returns `(t - near) / (far - near)`; 0 in an empty span."""
    length = jnp.broadcast_to(span.far - span.near, edges.shape)
    return safe_divide(edges - span.near, length)


def sample_keys(keys: Array | None, samples: int) -> Array | None:
    """Returns a key for every sample of every ray."""
    if keys is None:
        return None
    return jax.vmap(lambda key: jax.random.split(key, samples))(keys)


def fold(keys: Array | None, purpose: int) -> Array | None:
    """Returns keys of one purpose, one a ray."""
    return None if keys is None else jax.vmap(jax.random.fold_in, (0, None))(keys, purpose)
