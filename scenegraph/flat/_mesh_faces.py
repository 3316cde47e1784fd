"""The faces of all meshes of a scene, in the world, as one: they compile like one mesh."""

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp

from .._typing import Array, Bool, Float, Int, Scalar, UInt32
from ..numerics import (
    AbstractModule,
    max_or_nan,
    min_or_nan,
    order_by_place,
    safe_norm,
    safe_normalise,
)
from ..rays import Hit
from ..scene import has_pattern
from ..shaders import AbstractShader
from ..shapes import as_mesh, FACETED, Triangle, TriangleMesh
from ..transforms import AffineMap, rotate
from ._instances import Instance
from ._stacks import LeafStack, place_stack
from ._surface_instances import opacity_at
from ._tree import boxes_above


# Faces of a leaf of the tree, which is a run of them. With one, a ray tests as many boxes as faces;
# with sixteen, many faces in vain.
FACES_OF_LEAF = 4
# Faces whose bounds say whether an order is good.
_RUN = 32


class MeshFace(AbstractModule):
    """A triangle in the world, with the number of the surface that it belongs to."""

    shape: Triangle
    opacity: Float[Array, "*faces"]  # one where it is a shader
    owner: Int[Array, "*faces"]
    one_sided: Bool[Array, "*faces"] | None = None


class FaceTree(NamedTuple):
    """All that searches need of faces, without derivatives: a complete binary tree of boxes.

    As of `SurfaceTree`, the root is node 1, and the children of node `i` are nodes `2 i` and
    `2 i + 1`. Leaves are runs of `FACES_OF_LEAF` faces, of which the last is filled with faces of
    no area.
    """

    corners: Float[Array, "padded 3 3"]
    opacity: Float[Array, " padded"]  # the mean over a face, where it is a shader
    owner: Int[Array, " padded"]
    one_sided: Bool[Array, " padded"] | None  # `None` if no face is
    is_opaque: Bool[Array, ""]  # all faces are
    boxes: Float[Array, "nodes 6"]
    first_leaf: UInt32[Array, ""]

    def without_boxes(self) -> "FaceTree":
        """Returns a tree of which every ray meets all faces."""
        boxes, empty = self.boxes, self.boxes[:, :1] > self.boxes[:, 3:4]
        endless = jnp.asarray([-jnp.inf] * 3 + [jnp.inf] * 3, boxes.dtype)
        return self._replace(boxes=jnp.where(empty, boxes, endless))


class MeshVertices(NamedTuple):
    """The vertices of all meshes, in the world."""

    point: Float[Array, "vertices 3"]
    normal: Float[Array, "vertices 3"]
    uv: Float[Array, "vertices 2"]
    color: Float[Array, "vertices 3"]
    place: Float[Array, "vertices 3"]  # the point in the mesh's own frame


class MeshFaces(NamedTuple):
    """The faces of all meshes; of every mesh in an order in which neighbours are near.

    What is gathered are vertices: their cotangents take less memory than those of faces.
    """

    vertices: MeshVertices
    corners: Int[Array, "faces 3"]
    smooth: Bool[Array, " faces"]
    opacity: Float[Array, " faces"]
    owner: Int[Array, " faces"]
    one_sided: Bool[Array, " faces"] | None  # `None` if no face is
    row: Int[Array, " faces"]  # the face's place in the `faces` of its mesh
    reversed: Bool[Array, " faces"]  # its corners run the other way round than there
    tree: FaceTree

    def take(self, numbers: Int[Array, "*some"]) -> MeshFace:
        """Gathers faces."""
        corners = self.corners[numbers]
        vertices = jax.tree.map(lambda x: x[corners], self.vertices)
        flat = safe_normalise(_cross(vertices.point))[..., None, :]
        smooth = self.smooth[numbers][..., None, None]
        # A flat face has no normals at its vertices; the winding gives the side.
        normals = jnp.where(smooth, vertices.normal, flat)
        shape = Triangle(vertices.point, normals, vertices.uv, vertices.color, vertices.place)
        own = self.opacity, self.owner, self.one_sided
        return MeshFace(shape, *jax.tree.map(lambda x: x[numbers], own))


def is_mesh(stack: LeafStack) -> bool:
    """Returns true for a stack of meshes or height fields, or of their occluders."""
    return isinstance(stack.varying[0].shape, FACETED)


class _Part(NamedTuple):
    """The vertices and faces of one mesh, or of several along a leading axis."""

    vertices: MeshVertices
    corners: Int[Array, "faces 3"]
    smooth: Bool[Array, " faces"]
    opacity: Float[Array, " faces"]
    owner: Int[Array, " faces"]
    mean_opacity: Float[Array, " faces"]
    one_sided: Bool[Array, " faces"] | None
    row: Int[Array, " faces"]
    reversed: Bool[Array, " faces"]


def stack_faces(meshes: Sequence[LeafStack]) -> MeshFaces | None:
    """Gathers the faces of stacked surfaces, or occluders, in the world; `None` without meshes."""
    if not meshes:
        return None
    parts, begin = [], 0
    for stack in meshes:
        part = place_stack(stack).map(_part_of)
        count, each = part.vertices.point.shape[:2]
        # Meshes of one stack have as many vertices each: mesh i has those from begin + i each on.
        first = begin + each * jnp.arange(count, dtype=part.corners.dtype)
        part = part._replace(corners=part.corners + first[:, None, None])
        parts.append(jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), part))
        begin += count * each
    if all(stack.varying[0].shape.two_sided for stack in meshes):
        parts = [part._replace(one_sided=None) for part in parts]
    whole = jax.tree.map(lambda *xs: jnp.concatenate(xs), *parts) if parts[1:] else parts[0]
    # Mean opacities are those of searches alone.
    kept = {name: x for name, x in whole._asdict().items() if name != "mean_opacity"}
    return MeshFaces(**kept, tree=_tree_of(jax.lax.stop_gradient(whole)))


def _part_of(instance: Instance) -> _Part:
    """Returns one mesh in the world."""
    mesh = as_mesh(instance.node.shape)
    forward, inverse = instance.world_from_node, instance.node_from_world
    vertices = MeshVertices(mesh.vertices, *mesh.vertex_values(), mesh.vertices)
    if forward is not None and inverse is not None:
        vertices = _moved(forward, inverse, vertices)
    corners, points = mesh.faces.astype(jnp.int32), jax.lax.stop_gradient(vertices.point)
    row = _order_of(corners, points)
    corners = corners[row]
    turned = _is_turned(mesh, forward, points[corners])
    corners = jnp.where(turned, corners[:, ::-1], corners)
    spread = lambda x: jnp.broadcast_to(x, corners.shape[:1])
    one_sided = spread(jnp.asarray(not mesh.two_sided))
    smooth = spread(jnp.asarray(mesh.smooth))
    number, opacity = spread(instance.number), instance.node.opacity
    same = one_sided, row, spread(turned)
    if not has_pattern(opacity):
        whole = spread(opacity)
        return _Part(vertices, corners, smooth, whole, number, whole, *same)
    own = jax.tree.map(lambda x: x[corners], vertices)
    means = jax.vmap(partial(_mean_opacity, opacity))(own)
    return _Part(vertices, corners, smooth, jnp.ones_like(means), number, means, *same)


# Boxes about runs of faces may be so many times as large as those about their faces together: about
# one and a half times in the order of a k-d tree, two times in that of Hilbert's curve.
_WIDE = 4


def _order_of(
    corners: Int[Array, "faces 3"], points: Float[Array, "vertices 3"]
) -> Int[Array, " faces"]:
    """Returns an order of faces in which neighbours are near: their own, if it is one."""
    own = points[corners]
    whole = own[: len(own) // _RUN * _RUN].reshape(-1, 3 * _RUN, 3)

    def size(points: Array) -> Array:
        # The sum of squares of the sides: as a picture sees it.
        low, high = _bounds_of(points)
        return jnp.sum((high - low) ** 2)

    place = lambda: order_by_place(jnp.mean(own, axis=1), jnp.ones(len(own), bool))
    given = lambda: jnp.arange(len(own), dtype=jnp.int32)
    return jax.lax.cond(size(whole) > _WIDE * size(own), place, given)


# The least that searches take the opacity of a face for, and most, where it is a shader: its mean
# comes from a pyramid, which is not exact, and nothing is to be left out for it.
_LEAST, _MOST = 1e-3, 1 - 1e-3


def _mean_opacity(opacity: AbstractShader, corners: MeshVertices) -> Scalar:
    """Returns the mean of a shader over a triangle."""
    one = jax.tree.map(lambda x: x[1] - x[0], corners)
    two = jax.tree.map(lambda x: x[2] - x[0], corners)
    # A parallelogram with the sides (p + q) / sqrt(6) and (p - q) / sqrt(2) has the second moments
    # of a triangle with the sides p and q: d d^T = (p + q)(p + q)^T / 6 + (p - q)(p - q)^T / 2.
    sides = jax.tree.map(lambda p, q: jnp.stack([(p + q) / 6**0.5, (p - q) / 2**0.5]), one, two)
    middle = jax.tree.map(lambda x: jnp.mean(x, axis=0), corners)
    normal = safe_normalise(_cross(corners.point))
    full = jnp.ones_like(normal[0])
    hit = Hit(
        full,
        middle.point,
        normal,
        middle.uv,
        sides.uv,
        full,
        d_point=sides.point,
        place=middle.place,
        d_place=sides.place,
        color=middle.color,
    )
    return jnp.clip(opacity_at(opacity, hit, -normal), _LEAST, _MOST)


# Of the volume of balls about all corners, that of what counts as flat.
_FLAT = 1e-4


def _is_turned(
    mesh: TriangleMesh, forward: AffineMap | None, points: Float[Array, "faces 3 3"]
) -> Bool[Array, ""]:
    """Returns whether the fronts of faces are inside: those of two sides enclose their volume."""
    # The winding counts, which mirrors turn.
    mirrored = jnp.asarray(False) if forward is None else _determinant(forward.matrix) < 0
    if not mesh.two_sided:
        return mirrored
    a, b, c = jnp.moveaxis(points - jnp.mean(points, axis=(0, 1)), 1, 0)
    # Six times the volume: sum a . (b x c) over faces; a flat one has none but by rounding.
    parts = jnp.sum(a * jnp.cross(b, c), axis=-1)
    volume, least = jnp.sum(parts), _FLAT * jnp.sum(safe_norm(a) * safe_norm(jnp.cross(b, c)))
    return jnp.where(jnp.abs(volume) > least, volume < 0, mirrored)


def _determinant(matrix: Float[Array, "3 3"]) -> Scalar:
    return jnp.sum(matrix[0] * jnp.cross(matrix[1], matrix[2]))


def _moved(forward: AffineMap, inverse: AffineMap, vertices: MeshVertices) -> MeshVertices:
    # Normals are covectors: n' = A^-T n, of length one again.
    turn = jax.vmap(lambda n: rotate(inverse.matrix.T, n))
    normals = safe_normalise(turn(vertices.normal))
    return vertices._replace(point=jax.vmap(forward.point)(vertices.point), normal=normals)


# Relative to the size and place of a box: the rounding of its bounds.
_ROUNDING = 1e-5


def _tree_of(part: _Part) -> FaceTree:
    """Bounds runs of faces."""
    more = -part.corners.shape[0] % FACES_OF_LEAF
    fill = lambda x: jnp.pad(x, ((0, more), *((0, 0),) * (x.ndim - 1)), mode="edge")
    # The last leaf is filled with points: one vertex of the last face, three times.
    numbers = part.corners.at[-1:].get()[:, :1]
    numbers = jnp.concatenate([part.corners, jnp.broadcast_to(numbers, (more, 3))])
    corners = part.vertices.point[numbers]
    low, high = _bounds_of(corners.reshape(-1, FACES_OF_LEAF * 3, 3))
    margin = _ROUNDING * jnp.maximum(jnp.maximum(jnp.abs(low), jnp.abs(high)), high - low)
    boxes, first_leaf = boxes_above(jnp.concatenate([low - margin, high + margin], axis=1))
    owner, one_sided = jax.tree.map(fill, (part.owner, part.one_sided))
    opacity = fill(part.mean_opacity)
    opaque = jnp.all(opacity >= 1)
    return FaceTree(corners, opacity, owner, one_sided, opaque, boxes, first_leaf)


def _bounds_of(points: Float[Array, "sets points 3"]) -> tuple[Array, Array]:
    return min_or_nan(points, 1), max_or_nan(points, 1)


def _cross(corners: Float[Array, "*faces 3 3"]) -> Float[Array, "*faces 3"]:
    a, b, c = jnp.moveaxis(corners, -2, 0)
    return jnp.cross(b - a, c - a)
