from functools import partial
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Key

from .._typing import Array, Bool, Float, Int, PyTree, Vector
from ..compositing import composite_rows
from ..flat import FlatScene, Instance, InstanceStack, intersect, part_alphas
from ..rays import Hit, Irradiance, Layers, Radiance, Ray
from ..rows import map_rows
from ..visibility import INVISIBLE
from ._base import AbstractIntegrator
from ._details import details_of, fields_of_layers, no_details, Paint, paint
from ._find_and_shade import find_and_shade
from ._irradiance import irradiance_at
from ._ray_size import count_directions, is_of_large_shapes, ray_size
from ._secondary import shows_surroundings
from ._shadows import Shading


# Scalars of one ray's program, without derivatives. Measured: up to here, one program for the whole
# ray is faster than a search, its gradient too, which has about 3.5 times as many.
_SMALL = 16_000
# The same where a shape has many numbers: to compile the gradient of a distance on a grid over a
# floor takes 80 s of CPU time and 1.7 GB as one program, and more than 16 GB by a search.
_SMALL_OF_LARGE = 60_000
# The same by the direction of a panorama, of which there are many, computed side by side. Measured:
# a ball on a floor takes a sixteenth of the time of a search, its gradient a fifth.
_SMALL_EACH = 3_000


class Surfaces(AbstractIntegrator):
    """Integrates surfaces: the nearest layers of every ray, shaded, one behind the other.

    **Arguments:**

    - `layers`: the largest number of surfaces on a ray, one behind the other; a box or a cylinder
      that shows several sides in a pixel counts as often; static. Rays with more are counted in
      `Radiance.overflow`.
    - `shadows`: if true, surfaces cast shadows; static.
    - `bounces`: how often a cone is reflected or refracted on its way, by shaders that show their
      surroundings; what comes then is what is all around: panoramas, or the background. Static.
    - `lists`: if true, rays are tested against those surfaces only that they may touch; if false,
      against all; `None` for what is faster; static.
    """

    layers: int = eqx.field(static=True, default=8)
    shadows: bool = eqx.field(static=True, default=True)
    lists: bool | None = eqx.field(static=True, default=None)
    bounces: int = eqx.field(static=True, default=2)

    def __check_init__(self):
        if self.layers < 1:
            raise ValueError(f"`Surfaces.layers` must be at least 1; got {self.layers}.")
        if self.bounces < 0:
            raise ValueError(f"`Surfaces.bounces` must be at least 0; got {self.bounces}.")

    @property
    def budget(self) -> None:
        """None: every ray has layers of its own."""
        return None

    @property
    def samples_per_ray(self) -> int:
        return self.layers

    def with_budget(self, samples: float) -> "Surfaces":
        del samples
        return self

    def with_fixed_samples(self, scene: FlatScene, rays: Ray) -> "Surfaces":
        del scene, rays
        return self

    def __call__(
        self,
        scene: FlatScene,
        rays: Ray,
        *,
        keys: Key[Array, " rays"] | None = None,
        outputs: tuple[str, ...] = (),
    ) -> tuple[Radiance, ...]:
        del keys
        layers = self.layers_along(scene, rays, outputs=outputs)
        return (composite_rows(layers, rays),)

    def layers_along(self, scene: FlatScene, rays: Ray, *, outputs: tuple[str, ...] = ()) -> Layers:
        """Computes the layers of surfaces along rays.

        **Arguments:**

        - `scene`: the scene, from `sg.flat.flatten`.
        - `rays`: the rays, in world coordinates, with one leading axis.
        - `outputs`: the fields of `Radiance` that are to be computed of the layers beside colour,
          opacity and depth. Keyword only argument.

        **Returns:**

        The layers, with a leading axis over rays.
        """
        fields = fields_of_layers(outputs)
        if self.asks_all(scene):
            return map_rows(partial(self._along_one, fields=fields), scene.without_media(), rays)
        if self.lists is False and scene.triangles is not None:
            scene = eqx.tree_at(
                lambda x: x.triangles.tree, scene, scene.triangles.tree.without_boxes()
            )
        how = Shading(self.layers, self.shadows, fields, self.bounces)
        return find_and_shade(scene, rays, how)

    def asks_all(self, scene: FlatScene) -> bool:
        """Returns true if every ray is tested against all surfaces of a scene, without lists.

        **Arguments:**

        - `scene`: the scene, from `sg.flat.flatten`.

        **Returns:**

        True for scenes of few things, unless `lists` says otherwise. Never with meshes: with
        `lists=False` every ray meets all of their faces, one after the other. Never with shaders
        that show their surroundings.
        """
        if scene.triangles is not None or shows_surroundings(scene):
            return False
        if self.lists is not None:
            return not self.lists
        if not self.shadows:
            scene = eqx.tree_at(lambda flat: flat.lights, scene, ())
        size = ray_size(scene, self.layers)
        if size is None:
            return False
        small = _SMALL_OF_LARGE if is_of_large_shapes(scene) else _SMALL
        return size <= max(small, _SMALL_EACH * count_directions(scene))

    def _along_one(self, scene: FlatScene, ray: Ray, *, fields: tuple[str, ...]) -> Layers:
        if not scene.surfaces:
            return _no_layers(ray, fields)
        found = [self._intersect(stack, ray) for stack in scene.surfaces]
        join = lambda *xs: jnp.concatenate(xs)
        candidates = jax.tree.map(join, *(group.candidates for group in found))
        light = partial(_light, scene, view=ray.view, shadows=self.shadows)
        missed = sum((group.missed for group in found), jnp.zeros((), jnp.int32))
        count = candidates.alpha.shape[0]
        if count <= min(self.layers, _COMPARED):
            # There is space for all: nothing is selected, only put in order.
            lit = [light(x.candidates, known=x.stack.known_number()) for x in found]
            painted = _paint(found, jax.tree.map(join, *lit), ray.view, fields)
            layers = _sorted_layers(candidates, painted, missed, fields)
        else:
            order, overflow = _nearest(candidates, self.layers)
            near = jax.tree.map(lambda x: x[order], candidates)
            lit = _scatter(light(near), order, count)
            painted = jax.tree.map(lambda x: x[order], _paint(found, lit, ray.view, fields))
            details = details_of(fields, near.hit, painted, near.number)
            layers = Layers(near.hit.t, near.alpha, painted.rgb, missed + overflow, **details)
        # What is behind all layers is seen through prod_i (1 - alpha_i).
        transmits = jnp.prod(1 - layers.alpha) > INVISIBLE
        return eqx.tree_at(lambda x: x.overflow, layers, jnp.where(transmits, layers.overflow, 0))

    def _intersect(self, stack: InstanceStack, ray: Ray) -> "_Intersections":
        """Returns the nearest surfaces of one stack."""
        missed = jnp.zeros((), jnp.int32)
        hits = stack.map(lambda instance: intersect(instance, ray))
        if stack.count > self.layers:
            chosen, missed = _nearest_surfaces(hits, self.layers)
            stack, hits = stack.take(chosen), jax.tree.map(lambda x: x[chosen], hits)
        numbers = jnp.broadcast_to(stack.members.number[:, None], hits.t.shape)
        candidates = _Candidates(hits, jax.vmap(part_alphas)(hits), numbers)
        flat = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), candidates)
        return _Intersections(stack, flat, missed)


class _Candidates(NamedTuple):
    """Hits that may become layers, their opacities, and the numbers of their surfaces."""

    hit: Hit
    alpha: Float[Array, " candidates"]
    number: Int[Array, " candidates"]


class _Intersections(NamedTuple):
    """Surfaces of one stack on a ray, their parts in a row, and the number of those left out."""

    stack: InstanceStack
    candidates: _Candidates
    missed: Int[Array, ""]


def _light(scene: FlatScene, found: _Candidates, **options: Any) -> Irradiance:
    """Returns the light on candidates."""
    one = partial(irradiance_at, scene, **options)
    return jax.vmap(one)(found.hit, found.number)


def _sorted_layers(
    found: _Candidates, painted: Paint, missed: Int[Array, ""], fields: tuple[str, ...]
) -> Layers:
    keys = jnp.where(found.alpha > 0, found.hit.t, jnp.inf)
    details = details_of(fields, found.hit, painted, found.number)
    t, alpha, rgb, details = _sorted(keys, (found.hit.t, found.alpha, painted.rgb, details))
    return Layers(t, alpha, rgb, missed, **details)


def _nearest(found: _Candidates, count: int) -> tuple[Int[Array, " layers"], Int[Array, ""]]:
    """Returns the first candidates along the ray, and the number of further ones."""
    order = jnp.argsort(jnp.where(found.alpha > 0, found.hit.t, jnp.inf))[:count]
    touched = jnp.sum(found.alpha > 0, dtype=jnp.int32)
    return order, jnp.maximum(touched - count, 0)


def _scatter(lit: Irradiance, order: Int[Array, " layers"], count: int) -> Irradiance:
    """Returns the light on the layers, for all candidates; the others stay dark."""
    return jax.tree.map(lambda x: jnp.zeros((count, *x.shape[1:]), x.dtype).at[order].set(x), lit)


def _paint(
    found: list[_Intersections], lit: Irradiance, view: Vector, fields: tuple[str, ...]
) -> Paint:
    """Returns the colours of all candidates, stack by stack."""

    def paint_parts(instance: Instance, hits: Hit, lit: Irradiance) -> Paint:
        own = partial(paint, instance, instance.node.shader, fields=fields)
        return jax.vmap(own, (0, None, 0))(hits, view, lit)

    parts, begin = [], 0
    for stack, candidates, _ in found:
        members, size = stack.count, candidates.alpha.shape[0]
        # Candidates are in the order of stacks, members and parts.
        own = jax.tree.map(lambda x: x[begin : begin + size], lit)  # noqa: B023
        rows = jax.tree.map(
            lambda x: x.reshape(members, size // members, *x.shape[1:]),  # noqa: B023
            (candidates.hit, own),
        )
        painted = stack.map(paint_parts, *rows)
        parts.append(jax.tree.map(lambda x: x.reshape(size, 3), painted))  # noqa: B023
        begin += size
    return jax.tree.map(lambda *xs: jnp.concatenate(xs), *parts)


# Up to this many layers, comparing all with all is quicker than sorting. (Measured on a CPU,
# sorting two layers took as long as all the rest of a picture, and its derivative scatters.)
_COMPARED = 8


def _sorted(keys: Float[Array, " n"], rows: PyTree) -> PyTree:
    """Returns rows in the order of ascending keys; the sort is stable."""
    count = keys.shape[0]
    if count < 2:
        return rows
    first = jnp.tri(count, k=-1, dtype=bool)
    # The place of j is the number of those before it; chosen_ij is true if j has the place i.
    before = (keys[None, :] < keys[:, None]) | ((keys[None, :] == keys[:, None]) & first)
    place = jnp.sum(before, axis=1)
    chosen = place[None, :] == jnp.arange(count)[:, None]
    return jax.tree.map(partial(_picked, chosen), rows)


def _picked(chosen: Bool[Array, "n n"], x: Array) -> Array:
    wide = chosen.reshape(*chosen.shape, *(1,) * (x.ndim - 1))
    return jnp.sum(jnp.where(wide, x[None], 0), axis=1, dtype=x.dtype)


def _no_layers(ray: Ray, fields: tuple[str, ...]) -> Layers:
    table = lambda *shape: jnp.zeros((0, *shape), ray.direction.dtype)
    details = no_details(fields, 0, ray.direction.dtype)
    return Layers(table(), table(), table(3), jnp.zeros((), jnp.int32), **details)


def _nearest_surfaces(hits: Hit, count: int) -> tuple[Int[Array, " count"], Int[Array, ""]]:
    """Returns the nearest surfaces that the pixel touches, and the number of further ones."""
    touched = hits.coverage > 0
    t = jnp.min(jnp.where(touched, hits.t, jnp.inf), axis=1)
    _, chosen = jax.lax.top_k(-t, count)
    seen = jnp.sum(jnp.any(touched, axis=1), dtype=jnp.int32)
    return chosen, jnp.maximum(seen - count, 0)
