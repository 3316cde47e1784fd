"""Sheets: the fragments of a mesh in one pixel that lie side by side, and count as one layer.

Fragments of one sheet do not overlap: their coverages add. Two fragments are of one sheet if they
belong to the same mesh, are turned alike (both to the eye, or both away), and the stretches of the
ray over which the pixel sees them touch, to within the pixel's width. So front and back of a thin
wall are apart, and so are a near and a far part of the mesh, and neighbours are together.

Of a closed mesh, what is turned away from the eye lies behind what is turned to it, and so it does
wherever a mesh is folded back. Such a sheet counts as hidden as far as it can be: of its coverage
`b` behind sheets of coverage `f` remains `(b - f) / (1 - f)`, none at the outline, where both are
equal.
"""

from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp

from .._typing import Array, Bool, Float, Int, PyTree, Scalar
from ..numerics import dot, matmul, safe_divide, safe_norm, safe_normalise
from ..rays import Hit, Ray
from ._triangle import cross_triangle, Fragment, Triangle


# What is left of a hidden sheet counts from here on.
_VISIBLE = 1e-3
# Coverage up to here is rounding.
NOISE = 1e-7
# The most fragments that are kept apart for a ray that is rendered by itself.
_NEAREST = 64


class Sheets(NamedTuple):
    """The sheets of pixels, each in the place of its first fragment; zero in other places."""

    leader: Int[Array, "fragments *rays"]  # of every fragment, the place of its sheet
    coverage: Float[Array, "fragments *rays"]
    t: Float[Array, "fragments *rays"]
    end: Float[Array, "fragments *rays"]  # where the last of its stretches ends
    hidden: Float[Array, "fragments *rays"]  # by sheets of the mesh that are turned to the eye
    size: Int[Array, "fragments *rays"]  # the number of its fragments


class Pieces(NamedTuple):
    """Fragments of pixels, in the order in which their stretches begin."""

    begin: Float[Array, "fragments *rays"]  # infinite for none
    end: Float[Array, "fragments *rays"]
    t: Float[Array, "fragments *rays"]
    coverage: Float[Array, "fragments *rays"]
    kind: Int[Array, "fragments *rays"]  # equal, but for the sign, for faces of one mesh


def piece_of(ray: Ray, corners: Float[Array, "3 3"], owner: Int[Array, ""]) -> Pieces:
    """Returns the fragment of a triangle, and the stretch of the ray over which it is seen."""
    fragment = cross_triangle(ray, corners)
    # A point p is seen at t = (p - o) . d / |d|^2. With p = sum_i w_i c_i, its derivatives by the
    # pixel are sum_i dw_i (c_i - o) . d / |d|^2; t differs from that in the middle by at most
    # (|t_x| + |t_y|) / 2, here by twice that.
    squared = dot(ray.direction, ray.direction)
    t = matmul(corners - ray.origin, ray.direction) / squared
    gradients = matmul(matmul(fragment.d_weights.T, corners - ray.origin), ray.direction) / squared
    reach = jnp.sum(jnp.abs(gradients))
    # Widened by half the pixel at each end.
    sides = safe_norm(ray.d_origin + fragment.t * ray.d_direction)
    width = jnp.sum(sides) / 2 / jnp.sqrt(squared)
    begin = jnp.maximum(jnp.min(t), fragment.t - reach) - width / 2
    end = jnp.minimum(jnp.max(t), fragment.t + reach) + width / 2
    kind = jnp.where(fragment.facing < 0, -1 - owner, 1 + owner)
    return Pieces(begin, end, fragment.t, fragment.coverage, kind)


def find_sheets(pieces: Pieces) -> Sheets:
    """Groups the fragments of pixels."""
    kind, places = pieces.kind, _places_of(pieces.begin)
    used = jnp.isfinite(pieces.begin)
    # A loop, because arrays that are compared with themselves must not be computed twice, rounded
    # in two ways.
    most = jnp.max(jnp.sum(used, axis=0), initial=0)

    def reach(i: Array, ends: Array) -> Array:
        later = (places > i) & (kind == kind[i])
        return jnp.where(later, jnp.maximum(ends, pieces.end[i]), ends)

    # Sorted by their begins: those before have begun, and touch if they have not ended.
    before = jax.lax.fori_loop(0, most, reach, jnp.full_like(pieces.end, -jnp.inf))
    first = used & ~(pieces.begin <= before)

    def join(place: Array, there: Array, leader: Array) -> Array:
        own = used & there & (places >= place) & (kind == values_at(kind, place))
        return jnp.where(own, place, leader)

    leader = each_sheet(first, join, jnp.full(kind.shape, -1, jnp.int32))

    def add(place: Array, there: Array, sums: tuple[Array, Array, Array, Array]) -> tuple:
        own, here = there & (leader == place), there & (places == place)
        share = jnp.where(own, pieces.coverage, 0)
        end = jnp.max(jnp.where(own, pieces.end, -jnp.inf), axis=0)
        count = jnp.sum(own, axis=0, dtype=jnp.int32)
        new = jnp.sum(share, axis=0), jnp.sum(share * pieces.t, axis=0), end, count
        return tuple(jnp.where(here, x, y) for x, y in zip(new, sums, strict=True))

    zero = jnp.zeros_like(pieces.t)
    start = zero, zero, jnp.full_like(zero, -jnp.inf), jnp.zeros(zero.shape, jnp.int32)
    total, moment, end, count = each_sheet(first, add, start)
    # t = sum_i c_i t_i / sum_i c_i over a sheet's fragments
    hidden = _hidden(pieces._replace(coverage=total, end=end), first)
    return Sheets(leader, total, safe_divide(moment, total), end, hidden, count)


def _places_of(fragments: Array) -> Int[Array, "fragments *rays"]:
    """Returns the places of fragments, for all rays."""
    count, *rays = fragments.shape
    return jnp.arange(count, dtype=jnp.int32).reshape(-1, *(1,) * len(rays))


def each_sheet(
    first: Bool[Array, "fragments *rays"],
    step: Callable[[Int[Array, "*rays"], Bool[Array, "*rays"], PyTree], PyTree],
    start: PyTree,
) -> PyTree:
    """Calls a step with the first fragment of every ray's next sheet, and whether there is one."""
    count, places = first.shape[0], _places_of(first)

    def one(_: Array, carry: tuple[Array, PyTree]) -> tuple[Array, PyTree]:
        place, state = carry
        place = jnp.min(jnp.where(first & (places > place), places, count), axis=0, initial=count)
        return place, step(jnp.minimum(place, count - 1), place < count, state)

    none = jnp.full(first.shape[1:], -1, jnp.int32)
    most = jnp.max(jnp.sum(first, axis=0), initial=0)
    return jax.lax.fori_loop(0, most, one, (none, start))[1]


def values_at(
    values: Float[Array, "fragments *rays"] | Int[Array, "fragments *rays"],
    place: Int[Array, "*rays"],
) -> Array:
    """Returns the values of rays at their own places."""
    return jnp.take_along_axis(values, place[None], axis=0)[0]


def _hidden(sheets: Pieces, first: Bool[Array, "fragments *rays"]) -> Array:
    """Returns what may lie before sheets that are turned away from the eye.

    Every line that enters a closed mesh leaves it again: what is entered, less what is left.
    """
    kind, total, places = sheets.kind, sheets.coverage, _places_of(sheets.begin)

    def one(place: Array, there: Array, hidden: Array) -> Array:
        own = values_at(kind, place)
        # At an outline both sides begin at one place.
        enters = (kind == -own) & (sheets.begin <= values_at(sheets.end, place))
        leaves = (kind == own) & (places < place)
        passed = jnp.sum(jnp.where(enters, total, 0) - jnp.where(leaves, total, 0), axis=0)
        mine = (places == place) & there & (own > 0)
        return jnp.where(mine, jnp.clip(passed, 0, 1), hidden)

    return each_sheet(first, one, jnp.zeros_like(total))


def unhidden(coverage: Array, hidden: Array) -> Array:
    """Returns what counts of the coverage of sheets, as layers behind those that hide them."""
    # docs/surfaces.md, "Meshes": (b - f) / (1 - f). Layers multiply: the one behind is seen through
    # 1 - f, and b - f is to be seen of it.
    left = jnp.minimum(coverage, 1) - hidden
    share = left / jnp.maximum(1 - hidden, _VISIBLE)
    return jnp.where(hidden > 0, jnp.where(left > _VISIBLE, share, 0), jnp.minimum(coverage, 1))


def fragment_hit(ray: Ray, face: Triangle) -> Hit:
    """Returns the hit on a triangle, with its normal on the side that the ray comes from."""
    fragment = cross_triangle(ray, face.corners)
    weights, gradients = fragment.weights, fragment.d_weights.T
    a, b, c = face.corners
    flat, normal = jnp.cross(b - a, c - a), matmul(weights, face.normals)
    # The winding gives the side: near an outline, interpolated normals are turned away.
    side = -fragment.facing * jnp.where(dot(normal, flat) < 0, -1, 1)
    return Hit(
        fragment.t,
        matmul(weights, face.corners),
        side * normal,
        matmul(weights, face.uv),
        matmul(gradients, face.uv),
        fragment.coverage,
        d_point=matmul(gradients, face.corners),
        place=matmul(weights, face.places),
        d_place=matmul(gradients, face.places),
        color=matmul(weights, face.colors),
        side=side,
    )


def sheet_hit(hits: Hit, used: Bool[Array, " fragments"], whole: Scalar | None = None) -> Hit:
    """Returns the hit on a sheet: means over its fragments, weighted by their coverage.

    Point, in either frame, and uv are those of the fragment that covers most: the mean of points on
    a round mesh lies inside, in the shade, and the mean of uv on both sides of a seam on neither;
    footprints of fragments seen from the edge have no end. `whole` is the coverage of the sheet, by
    default that of the fragments.
    """
    coverage = jnp.where(used, hits.coverage, 0)
    total = jnp.sum(coverage)
    # Shares c_i / sum_j c_j; even ones where nothing is covered, so that the hit is finite.
    even = used.astype(coverage.dtype) / jnp.maximum(jnp.sum(used), 1)
    shares = jnp.where(total > 0, coverage / jnp.where(total > 0, total, 1), even)
    wide = lambda x, like: x.reshape(-1, *(1,) * (like.ndim - 1))
    mean = jax.tree.map(lambda x: jnp.sum(wide(shares, x) * x, axis=0), hits)
    most = jnp.argmax(coverage) == jnp.arange(len(coverage))
    one = lambda x: jnp.sum(jnp.where(wide(most, x), x, 0), axis=0)
    spot = lambda hit: (hit.point, hit.d_point, hit.place, hit.d_place, hit.uv, hit.duv, hit.side)
    pick = lambda hit: (*spot(hit), hit.normal, hit.coverage)
    whole = jnp.minimum(total, 1) if whole is None else whole
    normal = safe_normalise(mean.normal)
    return eqx.tree_at(pick, mean, (*map(one, spot(hits)), normal, whole))


def shadow_of(fragments: Fragment, two_sided: bool) -> Scalar:
    """Returns the part of a cone that all fragments stop, or those turned to its far end."""
    # A closed mesh is entered as often as it is left, so each side by itself covers what it stops.
    side = lambda sign: jnp.sum(jnp.where(fragments.facing == sign, fragments.coverage, 0))
    return jnp.minimum(jnp.maximum(side(-1), side(1)) if two_sided else side(1), 1)


def first_sheet(ray: Ray, faces: Triangle, two_sided: bool) -> Hit:
    """Returns the hit on the nearest sheet of triangles, of all or those turned to the eye."""
    line, corners = jax.lax.stop_gradient((ray, faces.corners))
    pieces = jax.vmap(lambda x: piece_of(line, x, jnp.zeros((), jnp.int32)))(corners)
    seen = (pieces.coverage > NOISE) & (two_sided | (pieces.kind < 0))
    begin = jnp.where(seen, pieces.begin, jnp.inf)
    order = jnp.argsort(begin)[:_NEAREST]
    pieces, faces = jax.tree.map(lambda x: x[order], (pieces._replace(begin=begin), faces))
    sheets = find_sheets(pieces)
    # A ray that misses has a hit on some triangle, with coverage 0.
    nothing = ~jnp.isfinite(pieces.begin[0])
    member = (sheets.leader == 0) | (nothing & (jnp.arange(len(order)) == 0))
    hits = jax.vmap(fragment_hit, (None, 0))(ray, faces)
    return sheet_hit(hits, member)
