"""Surfaces in the world: where rays meet them, and how much light they stop."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from .._typing import Array, Bool, Color, Float, Int, Scalar, Vector
from ..numerics import AbstractModule, as_type, dot, safe_divide, safe_normalise
from ..rays import Hit, Irradiance, no_light, Ray, transform_ray
from ..scene import has_pattern
from ..shaders import AbstractShader, albedo_of, asks_for_own_view, read_input
from ..shapes import AbstractBounded, bounding_ball, cone_touches
from ..transforms import Ball, rotate, transform_ball
from ._instances import Instance


class Occluder(AbstractModule):
    """The part of a surface that casts shadows: its shape and opacity, whatever its shader."""

    shape: Any
    opacity: Any  # a number or a shader, or those of all copies


def into(instance: Instance, ray: Ray) -> Ray:
    """Returns a ray of the world in an instance's frame; `t` keeps its meaning."""
    inverse = instance.node_from_world
    return ray if inverse is None else transform_ray(inverse, ray)


@eqx.filter_jit
def intersect(instance: Instance, ray: Ray) -> Hit:
    """Returns the hits on the parts of a surface, in the world, with normals turned to the eye."""
    hits, near = instance.node.shape.parts(into(instance, ray)), _is_near(instance, ray)
    # Shapes and shaders may hold numbers of the default type, whatever that of the scene.
    return as_type(jax.vmap(lambda hit: _in_world(instance, ray, hit, near))(hits), ray.near.dtype)


def _is_near(instance: Instance, ray: Ray) -> Bool[Array, ""]:
    """Returns false where a ray's cone does not touch the bounds of a surface, in the world.

    Coverage is that of an edge continued straight: a pixel that sees a large part of the directions
    would see it also where there is no surface. Candidate lists have the same bounds.
    """
    if not isinstance(instance.node.shape, AbstractBounded):
        return jnp.ones((), bool)
    return cone_touches(ray, world_ball(instance))


def _in_world(instance: Instance, ray: Ray, hit: Hit, near: Bool[Array, ""]) -> Hit:
    point, normal, d_point = hit.point, hit.normal, hit.d_point
    forward, inverse = instance.world_from_node, instance.node_from_world
    if forward is not None and inverse is not None:
        point = forward.point(point)
        # Normals are covectors: n' = A^-T n, of length one again.
        normal = safe_normalise(rotate(inverse.matrix.T, normal))
        d_point = jax.vmap(forward.direction)(d_point)
    # The middle of a pixel may look past a part that is seen from aside, along its other side.
    side = jnp.where(dot(normal, point - ray.origin) > 0, -1, 1)
    found = Hit(
        hit.t,
        point,
        side * normal,
        hit.uv,
        hit.duv,
        jnp.where(near, hit.coverage, 0),
        d_point=d_point,
        place=hit.place,
        d_place=hit.d_place,
        color=hit.color,
        side=side * hit.side,
    )
    stopped = opacity_at(instance.node.opacity, found, ray.view) * found.coverage
    return eqx.tree_at(lambda x: x.coverage, found, stopped)


def opacity_at(opacity: Scalar | AbstractShader, hit: Hit, view: Vector) -> Scalar:
    """Returns an opacity at a hit, in the world: a number, or the red of a shader."""
    return read_input(opacity, 0, hit, view, no_light(view.dtype))


def shade(
    instance: Instance, shader: AbstractShader, hit: Hit, view: Vector, lights: Irradiance
) -> Color:
    """Returns the colour at a hit, of a shader of a surface or of the instance itself."""
    hit = with_own_view(instance, shader, hit, view)
    return as_type(shader(hit, view, lights), hit.t.dtype)


def albedo_at(instance: Instance, shader: AbstractShader, hit: Hit, view: Vector) -> Color:
    """Returns the albedo at a hit, of a shader as in `shade`."""
    hit = with_own_view(instance, shader, hit, view)
    return as_type(albedo_of(shader, hit, view), hit.t.dtype)


def with_own_view(instance: Instance, shader: AbstractShader, hit: Hit, view: Vector) -> Hit:
    """Returns a hit with the ray's direction in the shape's own frame, if a shader asks for it."""
    if not asks_for_own_view(shader):
        return hit
    inverse = instance.node_from_world
    own = view if inverse is None else safe_normalise(rotate(inverse.matrix, view))
    return eqx.tree_at(lambda x: x.own_view, hit, own, is_leaf=lambda x: x is None)


@eqx.filter_jit
def occlusion(instance: Instance, ray: Ray, own: Int[Array, "*ends"]) -> Scalar:
    """Returns the fraction of a shadow ray's cone that an occluder stops.

    `own` are the numbers of the surfaces on which the ray begins and ends: a convex shape never
    shadows itself, because its far side is turned away from the light.
    """
    occluder = instance.node
    stopped = occluder.shape.coverage(into(instance, ray))
    if has_pattern(occluder.opacity):
        stopped *= _mean_opacity(instance, ray)
    else:
        stopped *= occluder.opacity
    counts = _is_near(instance, ray)
    if occluder.shape.is_convex:
        counts &= jnp.all(instance.number != own)
    return jnp.where(counts, stopped, 0).astype(ray.near.dtype)


def _mean_opacity(instance: Instance, ray: Ray) -> Scalar:
    """Returns the mean opacity of what a shadow ray's cone meets."""
    solid = eqx.tree_at(lambda x: x.node.opacity, instance, jnp.ones_like(ray.near))
    hits = intersect(solid, ray)
    opacities = jax.vmap(lambda hit: opacity_at(instance.node.opacity, hit, ray.view))(hits)
    # sum_i c_i o_i / sum_i c_i
    return safe_divide(jnp.sum(opacities * hits.coverage), jnp.sum(hits.coverage))


def part_alphas(hits: Hit) -> Float[Array, " parts"]:
    """Returns opacities of a shape's parts that, one behind the other, give each its coverage.

    Parts do not overlap: `alpha_i = c_i / (1 - sum of c_j over the nearer parts j)`.
    """
    if hits.t.shape[0] == 1:
        return hits.coverage
    t, first = hits.t, jnp.tri(hits.t.shape[0], k=-1, dtype=bool)
    before = (t[None, :] < t[:, None]) | ((t[None, :] == t[:, None]) & first)
    # alpha_i prod_{j<i} (1 - alpha_j) = c_i, where by induction the product is 1 - sum_{j<i} c_j.
    left = 1 - jnp.sum(jnp.where(before, hits.coverage[None, :], 0), axis=1)
    return jnp.clip(hits.coverage / jnp.maximum(left, 1e-6), 0, 1)


def hit_on_part(instance: Instance, ray: Ray, part: Int[Array, ""]) -> tuple[Hit, Scalar]:
    """Returns the hit on one part of a surface, and its opacity."""
    hits = intersect(instance, ray)
    is_it = jnp.arange(hits.t.shape[0]) == part
    pick = lambda x: jnp.sum(jnp.where(is_it.reshape(-1, *(1,) * (x.ndim - 1)), x, 0), axis=0)
    return jax.tree.map(pick, (hits, part_alphas(hits)))


def world_ball(instance: Instance) -> Ball:
    """Returns a ball that holds a surface, in the world."""
    ball, forward = bounding_ball(instance.node.shape), instance.world_from_node
    return ball if forward is None else transform_ball(forward, ball)
