from functools import partial
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Key

from .._typing import Array, Bool, Color, Float, Int, Scalar, Vector
from ..compositing import composite_layers
from ..rays import Hit, Illumination, Layers, Radiance, Ray
from ..scene import Placed, Scene, set_stage, Stage
from ._base import AbstractIntegrator
from ._lighting import illuminate


# Surfaces behind others that let less light through than this are not missed.
_INVISIBLE = 1e-3


class Surfaces(AbstractIntegrator):
    """Sees surfaces: the nearest layers of every ray, shaded, one behind the other.

    **Arguments:**

    - `layers`: how many surfaces a ray can see one behind the other; static. Rays that would see
      more are counted in `Radiance.overflow`.
    - `shadows`: whether surfaces cast shadows; static.
    """

    layers: int = eqx.field(static=True, default=4)
    shadows: bool = eqx.field(static=True, default=True)

    def __check_init__(self):
        if self.layers < 1:
            raise ValueError(f"`Surfaces.layers` must be at least 1; got {self.layers}.")

    @property
    def samples_per_ray(self) -> int:
        return self.layers

    def __call__(
        self, scene: Scene, rays: Ray, *, keys: Key[Array, " rays"] | None = None
    ) -> tuple[Radiance, ...]:
        del keys
        return (jax.vmap(composite_layers)(self.see(scene, rays), rays),)

    def see(self, scene: Scene, rays: Ray) -> Layers:
        """The layers that rays see.

        **Arguments:**

        - `scene`: without frozen wrappers.
        - `rays`: with one leading axis.

        **Returns:**

        The layers, with a leading axis over rays.
        """
        stage = set_stage(scene.root)
        return jax.vmap(lambda ray: self._see_one(stage, ray))(rays)

    def _see_one(self, stage: Stage, ray: Ray) -> Layers:
        met = [self._meet(group, ray) for group in stage.groups]
        parts = [_nothing(ray)]
        for group, lights in zip(met, self._lights(stage, met), strict=True):
            shade = jax.vmap(_shade, (None, 0, None, 0))
            rgb = eqx.filter_vmap(shade, in_axes=(eqx.if_array(0), 0, None, 0))(
                group.placed, group.hits, ray.view, lights
            )
            parts.append(_as_layers(group, rgb))
        return in_order(parts)

    def _meet(self, group: Placed, ray: Ray) -> "_Met":
        """The nearest surfaces of one group."""
        more = jnp.zeros((), jnp.int32)
        if group.number.shape[0] > self.layers:
            chosen, more = _choose(group, ray, self.layers)
            group = jax.tree.map(lambda x: x[chosen] if eqx.is_array(x) else x, group)
        hits = eqx.filter_vmap(lambda placed: placed.pieces(ray))(group)
        return _Met(group, hits, more)

    def _lights(self, stage: Stage, met: list["_Met"]) -> list[Illumination]:
        """What shines on all that is met, group by group."""

        def light(hit: Hit, number: Int[Array, ""]) -> Illumination:
            return illuminate(stage, hit, number, shadows=self.shadows)

        counts = [group.hits.t.shape for group in met]
        numbers = [jnp.repeat(group.placed.number, group.hits.t.shape[1]) for group in met]
        if not met:
            return []
        flat = [jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), group.hits) for group in met]
        hits = jax.tree.map(lambda *parts: jnp.concatenate(parts), *flat)
        lit, begin = jax.vmap(light)(hits, jnp.concatenate(numbers)), 0
        parts = []
        for members, pieces in counts:
            end = begin + members * pieces
            shape = (members, pieces)
            parts.append(jax.tree.map(partial(_cut, begin, end, shape), lit))
            begin = end
        return parts


class _Met(NamedTuple):
    """Surfaces that a ray may meet, where it does, and how many more there are."""

    placed: Placed
    hits: Hit
    more: Int[Array, ""]


def _cut(begin: int, end: int, shape: tuple[int, int], x: Array) -> Array:
    return x[begin:end].reshape(*shape, *x.shape[1:])


def _shade(placed: Placed, hit: Hit, view: Vector, lights: Illumination) -> Color:
    return placed.surface.shader(hit, view, lights)


def _as_layers(met: _Met, rgb: Float[Array, "surfaces pieces 3"]) -> Layers:
    alpha = jax.vmap(piece_alphas)(met.hits).reshape(-1)
    seen_through = jnp.prod(1 - alpha) > _INVISIBLE
    overflow = jnp.where(seen_through, met.more, 0)
    return Layers(met.hits.t.reshape(-1), alpha, rgb.reshape(-1, 3), overflow)


def piece_alphas(hits: Hit) -> Float[Array, " pieces"]:
    """Opacities of a shape's pieces that, one behind the other, give each its own coverage.

    The pieces do not overlap: what the nearer ones cover is not there for the others.

    **Arguments:**

    - `hits`: with a leading axis over pieces.

    **Returns:**

    One number a piece.
    """
    if hits.t.shape[0] == 1:
        return hits.coverage
    t, first = hits.t, jnp.tri(hits.t.shape[0], k=-1, dtype=bool)
    before = (t[None, :] < t[:, None]) | ((t[None, :] == t[:, None]) & first)
    left = 1 - jnp.sum(jnp.where(before, hits.coverage[None, :], 0), axis=1)
    return jnp.clip(hits.coverage / jnp.maximum(left, 1e-6), 0, 1)


def in_order(parts: list[Layers]) -> Layers:
    """Several lists of layers as one, from near to far.

    **Arguments:**

    - `parts`: of one ray.

    **Returns:**

    All layers, those that the ray does not meet at the end.
    """
    t, alpha, rgb = (
        jnp.concatenate([getattr(part, name) for part in parts]) for name in ("t", "alpha", "rgb")
    )
    order = jnp.argsort(jnp.where(alpha > 0, t, jnp.inf))
    overflow = sum((part.overflow for part in parts), jnp.zeros((), jnp.int32))
    return Layers(t[order], alpha[order], rgb[order], overflow)


def _nothing(ray: Ray) -> Layers:
    none = jnp.zeros(0, ray.direction.dtype)
    return Layers(none, none, jnp.zeros((0, 3), none.dtype), jnp.zeros((), jnp.int32))


def _choose(group: Placed, ray: Ray, count: int) -> tuple[Int[Array, " count"], Int[Array, ""]]:
    """The nearest surfaces of a group that the pixel touches, and how many more there are."""

    def look(placed: Placed) -> tuple[Scalar, Bool[Array, ""]]:
        hits = placed.pieces(ray)
        touched = hits.coverage > 0
        return jnp.min(jnp.where(touched, hits.t, jnp.inf)), jnp.any(touched)

    t, touched = eqx.filter_vmap(look)(group)
    _, chosen = jax.lax.top_k(-t, count)
    return chosen, jnp.maximum(jnp.sum(touched, dtype=jnp.int32) - count, 0)
