"""The faces of all meshes of a scene, in the world, as one stack: they compile like one mesh."""

from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp

from .._typing import Array, Float, Int
from ..numerics import AbstractModule, safe_normalise
from ..shapes import Triangle, TriangleMesh
from ..transforms import rotate
from ._instances import Instance, InstanceStack, stacked
from ._stacks import LeafStack, place_stack


class MeshFace(AbstractModule):
    """A triangle in the world, with the number of the surface that it belongs to."""

    shape: Triangle
    opacity: Float[Array, "*faces"]
    owner: Int[Array, "*faces"]


def is_mesh(stack: LeafStack) -> bool:
    """Returns true for a stack of meshes, or of their occluders."""
    return isinstance(stack.varying[0].shape, TriangleMesh)


def stack_faces(meshes: Sequence[LeafStack]) -> InstanceStack | None:
    """Gathers the faces of stacked surfaces, or occluders, in the world; `None` without meshes."""
    if not meshes:
        return None
    flat = lambda x: x.reshape(-1, *x.shape[2:])
    parts = [jax.tree.map(flat, place_stack(stack).map(_faces_of)) for stack in meshes]
    nodes = jax.tree.map(lambda *xs: jnp.concatenate(xs), *parts) if parts[1:] else parts[0]
    numbers = jnp.arange(nodes.owner.shape[0], dtype=jnp.int32)
    nothing = jax.tree.map(lambda _: None, nodes)
    return stacked(Instance(nodes, None, None, numbers), nothing)


def _faces_of(instance: Instance) -> MeshFace:
    """Returns the faces of one mesh in the world, with a leading axis."""
    faces = instance.node.shape.triangles()
    if instance.world_from_node is not None:
        faces = _moved(instance, faces)
    faces = _turned_outward(faces)
    spread = lambda x: jnp.broadcast_to(x, faces.corners.shape[:1])
    return MeshFace(faces, spread(instance.node.opacity), spread(instance.number))


def _turned_outward(faces: Triangle) -> Triangle:
    """Turns all faces of a mesh over if they enclose a negative volume: mirrored, or inside out."""
    away = jax.lax.stop_gradient(faces.corners - jnp.mean(faces.corners, axis=(0, 1)))
    a, b, c = jnp.moveaxis(away, 1, 0)
    inward = jnp.sum(a * jnp.cross(b, c)) < 0
    return jax.tree.map(lambda x: jnp.where(inward, x[:, ::-1], x), faces)


def _moved(instance: Instance, faces: Triangle) -> Triangle:
    forward, inverse = instance.world_from_node, instance.node_from_world
    each = lambda function: jax.vmap(jax.vmap(function))
    corners = each(forward.point)(faces.corners)
    # Normals are covectors: n' = A^-T n, of length one again.
    normals = safe_normalise(each(lambda n: rotate(inverse.matrix.T, n))(faces.normals))
    return eqx.tree_at(lambda x: (x.corners, x.normals), faces, (corners, normals))
