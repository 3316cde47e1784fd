from functools import partial
from typing import ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Key

from .._typing import Array, Bool, Color, Float, Int, Vector
from ..compositing import composite_layers
from ..rays import Hit, Irradiance, Layers, Radiance, Ray
from ..rowwise import map_rows
from ..scene import Detailed, Placed, Scene, set_stage, Stage
from ._base import AbstractIntegrator
from ._lighting import illuminate


# Surfaces behind others that let less light through than this are not missed.
_INVISIBLE = 1e-3


class Surfaces(AbstractIntegrator):
    """Sees surfaces: the nearest layers of every ray, shaded, one behind the other.

    **Arguments:**

    - `layers`: how many surfaces a ray can see one behind the other; a box or a cylinder that
      shows several sides in a pixel counts as often; static. Rays that would see more are counted
      in `Radiance.overflow`.
    - `shadows`: whether surfaces cast shadows; static.
    """

    by_ray: ClassVar[bool] = True

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

        The layers, with a leading axis over rays; they have normals if the scene is `Detailed`.
        """
        see = partial(self._see_one, detailed=isinstance(scene.root, Detailed))
        return map_rows(see, set_stage(scene.root), rays)

    def _see_one(self, stage: Stage, ray: Ray, *, detailed: bool) -> Layers:
        met = [self._meet(group, ray) for group in stage.groups]
        if not met:
            return _nothing(ray, detailed)
        offers = _joined([group.offers for group in met])
        if offers.alpha.shape[0] <= min(self.layers, _COMPARED):
            return self._see_all(stage, met, offers, ray, detailed)
        order, overflow = _nearest(offers, self.layers)
        chosen = jax.tree.map(lambda x: x[order], offers)
        lit = jax.vmap(partial(illuminate, stage, shadows=self.shadows))(chosen.hit, chosen.number)
        rgb = _shade(met, _spread(lit, order, offers.alpha.shape[0]), ray.view)[order]
        missed = sum((group.more for group in met), overflow)
        visible = jnp.prod(1 - chosen.alpha) > _INVISIBLE
        normal = chosen.hit.normal if detailed else None
        return Layers(chosen.hit.t, chosen.alpha, rgb, jnp.where(visible, missed, 0), normal)

    def _see_all(
        self, stage: Stage, met: list["_Met"], offers: "_Offer", ray: Ray, detailed: bool
    ) -> Layers:
        """Where there is room for all, nothing is chosen, only put in order."""
        light = partial(illuminate, stage, shadows=self.shadows)
        rgb = _shade(met, jax.vmap(light)(offers.hit, offers.number), ray.view)
        missed = sum((group.more for group in met), jnp.zeros((), jnp.int32))
        visible = jnp.prod(1 - offers.alpha) > _INVISIBLE
        keys = jnp.where(offers.alpha > 0, offers.hit.t, jnp.inf)
        normals = (offers.hit.normal,) if detailed else ()
        t, alpha, rgb, *normals = _sorted(keys, offers.hit.t, offers.alpha, rgb, *normals)
        return Layers(t, alpha, rgb, jnp.where(visible, missed, 0), *normals)

    def _meet(self, group: Placed, ray: Ray) -> "_Met":
        """The nearest surfaces of one group."""
        more = jnp.zeros((), jnp.int32)
        hits = eqx.filter_vmap(lambda placed: placed.pieces(ray))(group)
        if group.number.shape[0] > self.layers:
            chosen, more = _choose(hits, self.layers)
            group, hits = jax.tree.map(lambda x: x[chosen] if eqx.is_array(x) else x, (group, hits))
        numbers = jnp.broadcast_to(group.number[:, None], hits.t.shape)
        offers = _Offer(hits, jax.vmap(piece_alphas)(hits), numbers)
        return _Met(group, jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), offers), more)


class _Offer(NamedTuple):
    """What may become a layer: a hit, how much light it stops, and the surface's number."""

    hit: Hit
    alpha: Float[Array, " offers"]
    number: Int[Array, " offers"]


class _Met(NamedTuple):
    """Surfaces of one group that a ray may meet, their pieces in a row, and how many more are."""

    placed: Placed
    offers: _Offer
    more: Int[Array, ""]


def _joined(offers: list[_Offer]) -> _Offer:
    return jax.tree.map(lambda *parts: jnp.concatenate(parts), *offers)


def _nearest(offers: _Offer, count: int) -> tuple[Int[Array, " layers"], Int[Array, ""]]:
    """The first offers along the ray, and how many more there are."""
    order = jnp.argsort(jnp.where(offers.alpha > 0, offers.hit.t, jnp.inf))[:count]
    touched = jnp.sum(offers.alpha > 0, dtype=jnp.int32)
    return order, jnp.maximum(touched - count, 0)


def _spread(lit: Irradiance, order: Int[Array, " layers"], count: int) -> Irradiance:
    """The light on the layers, for all offers; the others stay dark."""
    return jax.tree.map(lambda x: jnp.zeros((count, *x.shape[1:]), x.dtype).at[order].set(x), lit)


def _shade(met: list[_Met], lights: Irradiance, view: Vector) -> Float[Array, "offers 3"]:
    """The colours of all offers, group by group."""

    def shade(placed: Placed, hit: Hit, lights: Irradiance) -> Color:
        return placed.surface.shader(hit, view, lights)

    colors, begin = [], 0
    for group in met:
        members, count = group.placed.number.shape[0], group.offers.alpha.shape[0]
        part = jax.tree.map(lambda x: x[begin : begin + count], lights)  # noqa: B023
        rows = jax.tree.map(
            lambda x: x.reshape(members, count // members, *x.shape[1:]),  # noqa: B023
            (group.offers.hit, part),
        )
        each = eqx.filter_vmap(jax.vmap(shade, (None, 0, 0)), in_axes=(eqx.if_array(0), 0, 0))
        colors.append(each(group.placed, *rows).reshape(count, 3))
        begin += count
    return jnp.concatenate(colors)


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


# Up to this many layers, comparing all with all is quicker than sorting. (Measured on a CPU,
# sorting two layers took as long as all the rest of a picture, and its derivative scatters.)
_COMPARED = 8


def _sorted(keys: Float[Array, " n"], *lists: Array) -> tuple[Array, ...]:
    """Lists in the order of ascending keys; equal ones stay as they are."""
    count = keys.shape[0]
    if count < 2:
        return lists
    first = jnp.tri(count, k=-1, dtype=bool)
    before = (keys[None, :] < keys[:, None]) | ((keys[None, :] == keys[:, None]) & first)
    place = jnp.sum(before, axis=1)
    chosen = place[None, :] == jnp.arange(count)[:, None]
    return tuple(_picked(chosen, x) for x in lists)


def _picked(chosen: Bool[Array, "n n"], x: Float[Array, "n *rest"]) -> Float[Array, "n *rest"]:
    wide = chosen.reshape(*chosen.shape, *(1,) * (x.ndim - 1))
    return jnp.sum(jnp.where(wide, x[None], 0), axis=1)


def _nothing(ray: Ray, detailed: bool) -> Layers:
    none, nowhere = jnp.zeros(0, ray.direction.dtype), jnp.zeros((0, 3), ray.direction.dtype)
    normal = nowhere if detailed else None
    return Layers(none, none, nowhere, jnp.zeros((), jnp.int32), normal)


def _choose(hits: Hit, count: int) -> tuple[Int[Array, " count"], Int[Array, ""]]:
    """The nearest surfaces of a group that the pixel touches, and how many more there are."""
    touched = hits.coverage > 0
    t = jnp.min(jnp.where(touched, hits.t, jnp.inf), axis=1)
    _, chosen = jax.lax.top_k(-t, count)
    seen = jnp.sum(jnp.any(touched, axis=1), dtype=jnp.int32)
    return chosen, jnp.maximum(seen - count, 0)
