import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Key

from .._typing import Array, Float, RandomKey, Scalar
from ..flat import FlatScene
from ..numerics import cumulative, inverse_cdf, max_blur
from ..rays import AbstractBeam, ConeBeam, Layers, Medium, Radiance, Ray, Section, Span
from ..scene import Pace
from ._base import AbstractMediaIntegrator, MediaAlong
from ._details import need_normals
from ._hierarchical import fold, sample_keys
from ._march import even_steps, March
from ._media import composite_along, media_at, prepare, Samples, thickness_at


# The share of a ray's samples that are spread evenly, whatever the occupancy knows.
_EVEN = 0.25


class Guided(AbstractMediaIntegrator):
    """A few samples of every ray, close together where its occupancies say that something is seen.

    The occupancies' optical depths, in even steps along a ray, make a histogram of what is seen
    where, from which the ends of the ray's intervals are drawn: a proposal that takes no network
    and no gradient. In a contracted volume the steps are even in contracted space.

    **Arguments:**

    - `samples`: the number of intervals of a ray; static.
    - `candidates`: the number of even steps of the histogram; static.
    - `beam`: the shape of rays.
    - `scale_gradients`: if true, gradients of samples in a contracted volume are smaller near the
      camera, times the square of the distance in balls, so that no fog is fitted before cameras;
      they are then no derivatives of the picture; static.
    - `fixed`: the bin edges, `rays samples+1`; `None` to draw them (`with_fixed_samples` sets it).

    **Source:** the histogram as in mip-NeRF 360 (Barron et al. 2022), section 3, from an occupancy
    as in Müller et al. 2022, "Instant neural graphics primitives", appendix C.
    """

    samples: int = eqx.field(static=True, default=24)
    candidates: int = eqx.field(static=True, default=128)
    beam: AbstractBeam = ConeBeam()
    scale_gradients: bool = eqx.field(static=True, default=False)
    fixed: Float[Array, "rays edges"] | None = None

    def __check_init__(self):
        if self.samples < 1 or self.candidates < 1:
            raise ValueError(
                f"`samples` and `candidates` must be at least 1; got {self.samples} and "
                f"{self.candidates}."
            )

    @property
    def budget(self) -> None:
        """None: every ray has samples of its own."""
        return None

    @property
    def samples_per_ray(self) -> int:
        return max(self.samples, self.candidates // 8)

    def with_budget(self, samples: float) -> "Guided":
        del samples
        return self

    def with_fixed_samples(
        self, scene: FlatScene, rays: Ray, layers: Layers | None = None
    ) -> "Guided":
        del layers
        return dataclasses.replace(self, fixed=self._edges(scene, rays, None))

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
        del layers
        edges = self._edges(scene, rays, keys) if self.fixed is None else self.fixed
        sections = jax.vmap(jax.vmap(self._section, (None, 0, 0)))(
            rays, edges[:, :-1], edges[:, 1:]
        )
        own = sample_keys(fold(keys, 1), self.samples)
        samples = Samples(rays, sections, own)
        medium = media_at(scene, samples, prepare(scene, rays), normal=normal)
        paces = jax.vmap(scene.pace)(rays) if self.scale_gradients else None
        if paces is not None:
            # t |d|, the distance from the eye, in the frame in which the ball has radius one.
            away = (edges[:, 1:] + edges[:, :-1]) / 2 * paces.rate[:, None]
            medium = jax.vmap(jax.vmap(_scale_gradient))(medium, away)
        return MediaAlong(medium, edges)

    def _section(self, ray: Ray, t0: Array, t1: Array) -> Section:
        return Section(self.beam(ray, t0, t1), t0, t1)

    def _edges(self, scene: FlatScene, rays: Ray, keys: Array | None) -> Float[Array, "rays edges"]:
        """Draws the bin edges of rays, in `t`, from what the occupancies know."""
        spans, numbers = jax.vmap(scene.span)(rays), jnp.arange(self.candidates)
        march = jax.vmap(self._march)(spans, jax.vmap(scene.pace)(rays))
        parts = jax.vmap(jax.vmap(March.part, (None, 0)), (0, None))(march, numbers)
        depth = thickness_at(scene, rays, parts)
        places = jax.vmap(self._places)(depth, fold(keys, 0))
        # Numbers of steps, fractions included, become t.
        return jax.lax.stop_gradient(jax.vmap(jax.vmap(March.edge, (None, 0)))(march, places))

    def _march(self, span: Span, pace: Pace | None) -> March:
        return even_steps(span, pace, self.candidates, 0.0, None)

    def _places(
        self, depth: Float[Array, " steps"], key: RandomKey | None
    ) -> Float[Array, " edges"]:
        """Returns the bin edges of a ray as numbers of steps, from 0 to the last."""
        # What is seen of step i: w_i = exp(-sum_{j<i} tau_j) (1 - exp(-tau_i))
        seen = jnp.exp(depth - jnp.cumsum(depth)) * -jnp.expm1(-depth)
        # Drawn from w + e / (1 - e) mean(w): the share e of edges is even along the ray.
        blurred = max_blur(seen)
        even = _EVEN / (1 - _EVEN) * jnp.maximum(jnp.sum(blurred), 1e-3) / self.candidates
        inner = jnp.arange(1, self.samples, dtype=depth.dtype)
        if key is not None:
            inner += jax.random.uniform(key, inner.shape, depth.dtype) - 0.5
        steps = jnp.arange(self.candidates + 1, dtype=depth.dtype)
        drawn = inverse_cdf(steps, cumulative(blurred + even), inner / self.samples)
        # The first edge and the last are the ends of the ray.
        return jnp.concatenate([steps[:1], drawn, steps[-1:]])


def _scale_gradient(medium: Medium, distance: Scalar) -> Medium:
    """Returns a medium whose gradient is smaller near the camera; distances are in balls.

    More rays meet a place the nearer it is to a camera, as the inverse square: what is near would
    be fitted first, as fog before each camera.
    """
    # Philip and Deschaintre 2023, "Floaters No More", section 4: times min(1, distance^2).
    # share x + stop((1 - share) x) has the value x, and `share` times its gradient.
    share = jnp.minimum(1.0, distance**2)
    return jax.tree.map(lambda x: share * x + jax.lax.stop_gradient((1 - share) * x), medium)
