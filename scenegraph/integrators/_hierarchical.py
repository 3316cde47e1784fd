from collections.abc import Callable
from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Key

from .._typing import Array, Float, PyTree, RandomKey, Scalar
from ..compositing import composite, composite_with_layers
from ..numerics import safe_divide
from ..rays import AbstractBeam, ConeBeam, Layers, Medium, Radiance, Ray, Section, Span
from ..samplers import (
    AbstractSpacing,
    resample,
    resampling_weights,
    sample_edges,
    Uniform,
)
from ..scene import AbstractNode, Scene
from ._base import AbstractMediaIntegrator


def _medium(
    node: AbstractNode, section: Section, prepared: PyTree, key: RandomKey | None
) -> Medium:
    return node.medium(section, prepared, key=key)


def _propose(
    node: AbstractNode, section: Section, prepared: PyTree, key: RandomKey | None
) -> Medium:
    del key
    density = node.propose(section, prepared)
    return Medium(density, jnp.zeros((3,), density.dtype))


class Hierarchical(AbstractMediaIntegrator):
    """mip-NeRF's integrator: even samples first, then samples where the level before saw something.

    All levels ask the same field; overlapping media add their densities.

    **Arguments:**

    - `samples`: how many intervals each level has, coarse to fine.
    - `beam`: how wide rays are: `ConeBeam()` or `CylinderBeam()`.
    - `spacing`: of the first level.
    - `padding`: added to the weights before resampling.
    - `stop_gradient`: whether the positions of finer levels, between the ends of what a ray sees,
      are taken as constants.
    - `empty_depth_near`: whether a ray that meets nothing has the depth of its near end, as the
      published code computes it, instead of its far end.
    - `proposals`: whether all levels but the last only ask the volumes' proposals, which have
      densities and no colours; `ProposalLoss` fits these to what the last level sees.

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

    def __check_init__(self):
        if not self.samples or min(self.samples) < 1:
            raise ValueError(f"every level needs at least one sample; got {self.samples}.")

    @property
    def samples_per_ray(self) -> int:
        return max(self.samples)

    def through(
        self,
        scene: Scene,
        rays: Ray,
        layers: Layers | None,
        *,
        keys: Key[Array, " rays"] | None = None,
    ) -> tuple[Radiance, ...]:
        prepared = jax.vmap(scene.root.prepare)(rays)
        spans = jax.vmap(scene.root.span)(rays)
        edges = self.first_edges(spans, keys)
        levels = []
        for level, count in enumerate(self.samples):
            if level > 0:
                edges = self._next_edges(levels[-1], spans, count, fold(keys, 2 * level))
            noise_keys = fold(keys, 2 * level + 1)
            levels.append(
                self.integrate_at(scene, rays, prepared, edges, noise_keys, layers, level=level)
            )
        return tuple(levels)

    def first_edges(self, spans: Span, keys: Array | None) -> Float[Array, "rays edges"]:
        """The bin edges of the first level.

        **Arguments:**

        - `spans`: of the rays.
        - `keys`: one a ray, for jitter; `None` for none.

        **Returns:**

        Values of `t`.
        """

        def one_ray(span: Span, key: RandomKey | None) -> Float[Array, " edges"]:
            return sample_edges(self.spacing, span.near, span.far, self.samples[0], key=key)

        return jax.vmap(one_ray)(spans, fold(keys, 0))

    def _next_edges(
        self, before: Radiance, spans: Span, count: int, keys: Array | None
    ) -> Float[Array, "rays edges"]:
        def one_ray(edges: Array, weights: Array, key: RandomKey | None) -> Array:
            return resample(edges, resampling_weights(weights, self.padding), count, key=key)

        edges = jax.vmap(one_ray)(before.edges, before.weights, keys)
        if not self.stop_gradient:
            return edges
        return jax.vmap(_ride)(jax.lax.stop_gradient(edges), spans)

    def integrate_at(
        self,
        scene: Scene,
        rays: Ray,
        prepared: PyTree,
        edges: Float[Array, "rays edges"],
        keys: Key[Array, " rays"] | None,
        layers: Layers | None = None,
        *,
        level: int = -1,
    ) -> Radiance:
        """One level, with its samples where they are given.

        **Arguments:**

        - `scene`, `rays`: as in `__call__`.
        - `prepared`: what the scene's root prepared for every ray.
        - `edges`: bin edges of the samples, in `t`.
        - `keys`: one a ray, for noise.
        - `layers`: what the rays see of surfaces.
        - `level`: its number; the last one if negative. Keyword only argument.

        **Returns:**

        The radiance, before any background.
        """
        sections = jax.vmap(self._sections)(rays, edges)
        proposed = self.proposals and 0 <= level < len(self.samples) - 1
        ask = partial(_propose if proposed else _medium, scene.root)
        medium = _ask_everywhere(ask, sections, prepared, keys)

        def one_ray(
            medium: Medium, edges: Array, direction: Array, layers: Layers | None
        ) -> Radiance:
            if layers is not None:
                return composite_with_layers(medium, edges, direction, layers)
            return composite(medium, edges, direction, empty_depth_near=self.empty_depth_near)

        return jax.vmap(one_ray)(medium, edges, rays.direction, layers)

    def _sections(self, ray: Ray, edges: Float[Array, " edges"]) -> Section:
        def section(t0: Scalar, t1: Scalar) -> Section:
            return Section(self.beam(ray, t0, t1), t0, t1)

        return jax.vmap(section)(edges[:-1], edges[1:])


@jax.custom_jvp
def _ride(edges: Float[Array, " edges"], span: Span) -> Float[Array, " edges"]:
    """Constant positions between the ends of a ray's span, which may themselves move.

    Where the ends are constant, as in the published method, so is everything.
    """
    del span
    return edges


@_ride.defjvp
def _ride_jvp(primals: tuple, tangents: tuple) -> tuple[Array, Array]:
    share = positions(*primals)
    return primals[0], (1 - share) * tangents[1].near + share * tangents[1].far


def positions(edges: Float[Array, " edges"], span: Span) -> Float[Array, " edges"]:
    """Where samples lie between the ends of a ray's span.

    **Arguments:**

    - `edges`: in `t`.
    - `span`: of the same ray.

    **Returns:**

    From 0 at the near end to 1 at the far end; 0 everywhere in an empty span.
    """
    length = jnp.broadcast_to(span.far - span.near, edges.shape)
    return safe_divide(edges - span.near, length)


def _ask_everywhere(
    ask: Callable, sections: Section, prepared: PyTree, keys: Array | None
) -> Medium:
    """The media at all samples of all rays: one flat axis, so that networks see one product."""
    rays, samples = sections.t0.shape

    def flatten(x: Array) -> Array:
        return x.reshape(rays * samples, *x.shape[2:])

    def repeat(x: Array) -> Array:
        return flatten(jnp.broadcast_to(x[:, None], (rays, samples, *x.shape[1:])))

    arguments = jax.tree.map(flatten, sections), jax.tree.map(repeat, prepared)
    medium = jax.vmap(ask)(*arguments, _sample_keys(keys, samples))
    return jax.tree.map(lambda x: x.reshape(rays, samples, *x.shape[1:]), medium)


def _sample_keys(keys: Array | None, samples: int) -> Array | None:
    if keys is None:
        return None
    return jax.vmap(lambda key: jax.random.split(key, samples))(keys).reshape(-1)


def fold(keys: Array | None, number: int) -> Array | None:
    """Keys of one purpose for every ray.

    **Arguments:**

    - `keys`: one a ray, or `None`.
    - `number`: of the purpose.

    **Returns:**

    As many keys, or `None`.
    """
    return None if keys is None else jax.vmap(jax.random.fold_in, (0, None))(keys, number)
