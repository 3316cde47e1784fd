import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Key

from .._typing import Array, Bool, Color, Float, Int, Scalar, Vector
from ..compositing import composite_layers
from ..lights import Shine
from ..rays import Hit, Illumination, Layers, Radiance, Ray
from ..scene import Placed, Scene, set_stage, Stage
from ._base import AbstractIntegrator


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
        parts = [self._see_group(stage, number, ray) for number in range(len(stage.groups))]
        return in_order([_nothing(ray), *parts])

    def _see_group(self, stage: Stage, number: int, ray: Ray) -> Layers:
        """The nearest surfaces of one group, shaded."""
        group, size = stage.groups[number], stage.sizes[number]
        chosen, more = jnp.arange(size), jnp.zeros((), jnp.int32)
        if size > self.layers:
            chosen, more = _choose(group, ray, self.layers)
            group = jax.tree.map(lambda x: x[chosen] if eqx.is_array(x) else x, group)

        def see(placed: Placed, index: Int[Array, ""]) -> Layers:
            hits = placed.pieces(ray)
            shade = lambda hit: self._shade(stage, placed, (number, index), hit, ray.view)
            return Layers(hits.t, piece_alphas(hits), jax.vmap(shade)(hits), jnp.zeros_like(more))

        layers = eqx.filter_vmap(see)(group, chosen)
        t, alpha, rgb = (x.reshape(-1, *x.shape[2:]) for x in (layers.t, layers.alpha, layers.rgb))
        seen_through = jnp.prod(1 - alpha) > _INVISIBLE
        return Layers(t, alpha, rgb, jnp.where(seen_through, more, 0))

    def _shade(
        self, stage: Stage, placed: Placed, own: tuple[int, Array], hit: Hit, view: Vector
    ) -> Color:
        shines = [light.shine(hit.point, hit.d_point) for light in stage.lights]
        lit = [self._arrives(stage, own, shine) for shine in shines]
        none = jnp.zeros((0, 3), hit.point.dtype)
        directions = jnp.concatenate([none, *(shine.rays.view for shine in shines)])
        ambient = sum((shine.ambient for shine in shines), jnp.zeros(3, hit.point.dtype))
        lights = Illumination(directions, jnp.concatenate([none, *lit]), ambient)
        return placed.surface.shader(hit, view, lights)

    def _arrives(self, stage: Stage, own: tuple[int, Array], shine: Shine) -> Array:
        if not self.shadows:
            return shine.irradiance
        open_part = jax.vmap(lambda ray: visibility(stage, ray, own))(shine.rays)
        return open_part[:, None] * shine.irradiance


def visibility(stage: Stage, ray: Ray, own: tuple[int, Array]) -> Scalar:
    """The part of a shadow ray's cone that reaches the light.

    **Arguments:**

    - `stage`: what may stand in the way.
    - `ray`: from a surface to a light.
    - `own`: the group of the surface that the ray begins on, and its place there: if convex, it
      is never in its own way (its far side is turned away from the light).

    **Returns:**

    Between 0 and 1; edges that meet in one pixel are taken as uncorrelated.
    """
    total = jnp.ones_like(ray.near)
    for number, group in enumerate(stage.groups):
        stopped = eqx.filter_vmap(lambda placed: placed.coverage(ray))(group)
        if number == own[0] and group.surface.shape.is_convex:
            stopped = jnp.where(jnp.arange(stopped.shape[0]) == own[1], 0, stopped)
        total = total * jnp.prod(1 - stopped)
    return total


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
