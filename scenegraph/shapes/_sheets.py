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

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp

from .._typing import Array, Bool, Float, Int, Scalar
from ..numerics import dot, matmul, safe_divide, safe_norm, safe_normalise
from ..rays import Hit, Ray
from ._triangle import cross_triangle, Fragment, Triangle


# What is left of a hidden sheet counts from here on.
_VISIBLE = 1e-3
# Coverage up to here is rounding.
NOISE = 1e-7


class Piece(NamedTuple):
    """A fragment of a pixel, and the stretch of its ray over which it is seen."""

    begin: Scalar
    end: Scalar
    t: Scalar
    coverage: Scalar
    # Equal, but for the sign, for faces of one mesh: its number, counted from one, and below zero
    # for a face that is turned to the eye.
    kind: Int[Array, ""]


def piece_of(
    ray: Ray, corners: Float[Array, "3 3"], owner: Int[Array, ""], *, in_search: bool = False
) -> Piece:
    """Returns the fragment of a triangle, and the stretch of the ray over which it is seen."""
    fragment = cross_triangle(ray, corners, in_search=in_search)
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
    return Piece(begin, end, fragment.t, fragment.coverage, kind)


class Sheets(NamedTuple):
    """The sheets of a pixel, in no order."""

    kind: Int[Array, " sheets"]  # of its fragments, see `Piece`; zero for none
    begin: Float[Array, " sheets"]
    end: Float[Array, " sheets"]
    coverage: Float[Array, " sheets"]
    moment: Float[Array, " sheets"]  # the sum of coverage times `t`
    opaque: Float[Array, " sheets"]  # the sum of coverage times opacity

    @property
    def t(self) -> Float[Array, " sheets"]:
        """The places of sheets: means over their fragments."""
        # t = sum_i c_i t_i / sum_i c_i
        return safe_divide(self.moment, self.coverage)

    @property
    def opacity(self) -> Float[Array, " sheets"]:
        """Their mean opacities."""
        return safe_divide(self.opaque, self.coverage)

    def hidden(self) -> Float[Array, " sheets"]:
        """Computes the coverage of what may lie before sheets that are turned away from the eye.

        Every line that enters a closed mesh leaves it again: what is entered, less what is left.
        """

        def one(k: Array, hidden: Array) -> Array:
            kind, begin, end = self.kind[k], self.begin[k], self.end[k]
            # At an outline both sides begin at one place.
            enters = (self.kind == -kind) & (self.begin <= end)
            leaves = (self.kind == kind) & (self.begin < begin)
            passed = jnp.where(enters, self.coverage, jnp.where(leaves, -self.coverage, 0))
            before = jnp.clip(jnp.sum(passed), 0, 1)
            return hidden.at[k].set(jnp.where(kind > 0, before, 0))

        count = self.kind.shape[0]
        return jax.lax.fori_loop(0, count, one, jnp.zeros_like(self.coverage))


def no_sheets(count: int, dtype: Any) -> Sheets:
    """Returns places for so many sheets, without any."""
    zero, far = jnp.zeros(count, dtype), jnp.full(count, jnp.inf, dtype)
    return Sheets(jnp.zeros(count, jnp.int32), far, -far, zero, zero, zero)


def sheet_of(piece: Piece, opacity: Scalar) -> Sheets:
    """Returns the sheet of a fragment alone, as scalars."""
    moment, opaque = piece.coverage * piece.t, piece.coverage * opacity
    return Sheets(piece.kind, piece.begin, piece.end, piece.coverage, moment, opaque)


def touches(one: Sheets, other: Sheets) -> Bool[Array, "*sheets"]:
    """Returns whether sheets are one: those of one kind whose stretches touch."""
    same = (one.kind == other.kind) & (one.kind != 0)
    return same & (one.begin <= other.end) & (other.begin <= one.end)


def join(one: Sheets, other: Sheets) -> Sheets:
    """Returns the sheet that two are together, of the kind of the first."""
    begin, end = jnp.minimum(one.begin, other.begin), jnp.maximum(one.end, other.end)
    sums = map(jnp.add, one[3:], other[3:])
    return Sheets(one.kind, begin, end, *sums)


def add_sheet(sheets: Sheets, one: Sheets, there: Bool[Array, ""]) -> tuple[Sheets, Scalar]:
    """Adds a sheet, if it is `there`, to those of a pixel, and joins those it touches.

    If there is no place for one more, that which begins last is lost; returns its coverage, too.
    """
    # In whatever order they come.
    same = there & touches(sheets, one)
    number = jnp.arange(sheets.kind.shape[0], dtype=jnp.int32)
    first = lambda some: jnp.min(jnp.where(some, number, number.shape[0]))
    # Places without a sheet begin at infinity: they are taken first.
    last = jnp.max(sheets.begin)
    place, own = first(same), first(sheets.begin == last)
    has_place = (place < number.shape[0]) | (one.begin < last)
    place = jnp.where(place < number.shape[0], place, own)

    mine = number == place
    lost = jnp.where(mine & ~same, sheets.coverage, 0)
    lost = jnp.where(there, jnp.where(has_place, jnp.sum(lost), one.coverage), 0)
    none = Sheets(*(x[0] for x in no_sheets(1, one.begin.dtype)))
    pick = lambda x, nothing: jnp.where(same, x, nothing)
    others = Sheets(*map(pick, sheets, none))
    low, high = jnp.min(others.begin), jnp.max(others.end)
    joined = join(one, Sheets(one.kind, low, high, *map(jnp.sum, others[3:])))
    put, gone = there & has_place & mine, same & ~mine
    after = [
        jnp.where(put, x, jnp.where(gone, y, before))
        for x, y, before in zip(joined, none, sheets, strict=True)
    ]
    return Sheets(*after), lost


def unhidden(coverage: Array, hidden: Array) -> Array:
    """Returns what counts of the coverage of sheets, as layers behind those that hide them."""
    # docs/surfaces.md, "Meshes": (b - f) / (1 - f). Layers multiply: the one behind is seen through
    # 1 - f, and b - f is to be seen of it.
    left = jnp.minimum(coverage, 1) - hidden
    share = left / jnp.maximum(1 - hidden, _VISIBLE)
    return jnp.where(hidden > 0, jnp.where(left > _VISIBLE, share, 0), jnp.minimum(coverage, 1))


def fragment_hit(ray: Ray, face: Triangle) -> Hit:
    """Returns the hit on a triangle, with its normal on the side that the ray comes from."""
    return hit_of_fragment(cross_triangle(ray, face.corners), face)


def hit_of_fragment(fragment: Fragment, face: Triangle) -> Hit:
    """Returns the hit on the triangle that a fragment is of, as `fragment_hit`."""
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


def visible_shares(
    coverage: Float[Array, " fragments"], t: Float[Array, " fragments"]
) -> Float[Array, " fragments"]:
    """Returns what nearer fragments leave of the coverage of fragments.

    All of it where they lie side by side. In a crease, where one part of a mesh goes into another,
    they lie one behind the other.
    """
    number = jnp.arange(coverage.shape[0])
    first = (t[None, :] < t[:, None]) | ((t[None, :] == t[:, None]) & (number < number[:, None]))
    nearer = jnp.sum(jnp.where(first, coverage[None, :], 0), axis=1)
    return jnp.clip(1 - nearer, 0, coverage)


def sheet_hit(hits: Hit, used: Bool[Array, " fragments"], whole: Scalar | None = None) -> Hit:
    """Returns the hit on a sheet: means over its fragments, weighted by their coverage.

    Point, in either frame, and uv are those of the fragment of which most is seen: the mean of
    points on a round mesh lies inside, in the shade, and the mean of uv on both sides of a seam on
    neither; footprints of fragments seen from the edge have no end. `whole` is the coverage of the
    sheet, by default that of the fragments.
    """
    coverage = visible_shares(jnp.where(used, hits.coverage, 0), hits.t)
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


# The most sheets that are kept apart for a ray that is rendered by itself.
_SHEETS = 32


def first_sheet(ray: Ray, faces: Triangle, two_sided: bool) -> Hit:
    """Returns the hit on the nearest sheet of triangles, of all or those turned to the eye."""
    line, corners = jax.lax.stop_gradient((ray, faces.corners))
    pieces = jax.vmap(lambda x: piece_of(line, x, jnp.zeros((), jnp.int32)))(corners)
    seen = (pieces.coverage > NOISE) & (two_sided | (pieces.kind < 0))

    def add(sheets: Sheets, one: tuple[Piece, Array]) -> tuple[Sheets, None]:
        piece, there = one
        return add_sheet(sheets, sheet_of(piece, jnp.ones_like(piece.t)), there)[0], None

    sheets, _ = jax.lax.scan(add, no_sheets(_SHEETS, line.near.dtype), (pieces, seen))
    first = jnp.argmin(sheets.begin)
    kind, begin, end = (x[first] for x in sheets[:3])
    member = seen & (pieces.kind == kind) & (pieces.begin >= begin) & (pieces.begin <= end)
    # A ray that misses has a hit on some triangle, with coverage 0.
    nearest = jnp.arange(seen.shape[0]) == jnp.argmin(pieces.begin)
    member |= ~jnp.any(seen) & nearest
    hits = jax.vmap(fragment_hit, (None, 0))(ray, faces)
    return sheet_hit(hits, member)
