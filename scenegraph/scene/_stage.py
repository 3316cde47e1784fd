from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from .._typing import Array, Float, Int, Matrix3, Scalar
from ..lights import AbstractLight
from ..numerics import AbstractModule, dot, is_frozen, safe_normalise, unfreeze
from ..rays import Hit, Ray, transform_ray
from ..shapes import AbstractShape
from ..transforms import AbstractTransform, inverse_matrix, rotate
from ._detailed import Detailed
from ._group import Group
from ._surface import Surface
from ._transformed import Transformed


class Placed(AbstractModule):
    """A surface with the transforms above it.

    **Arguments:**

    - `surface`: in its own frame.
    - `frames`: world from surface, the outermost first.
    - `number`: of the surface in its scene.
    """

    surface: Surface
    frames: tuple[AbstractTransform, ...]
    number: Int[Array, ""]

    def pieces(self, ray: Ray) -> Hit:
        """Where a ray meets the smooth pieces of the surface, seen from the world.

        **Arguments:**

        - `ray`: one ray, in the world.

        **Returns:**

        A hit with a leading axis over pieces; normals are turned to the eye.
        """
        pieces = self.surface.shape.parts(_into(self.frames, ray))
        return jax.vmap(self._outwards, (None, 0))(ray, pieces)

    def _outwards(self, ray: Ray, hit: Hit) -> Hit:
        point, normal, d_point = hit.point, hit.normal, hit.d_point
        for frame in reversed(self.frames):
            matrix = frame.linear()
            point, normal = frame.point(point), _turn_normal(matrix, normal)
            d_point = jax.vmap(rotate, (None, 0))(matrix, d_point)
        facing = jnp.where(dot(normal, ray.direction) > 0, -normal, normal)
        return Hit(
            hit.t,
            point,
            facing,
            hit.uv,
            hit.duv,
            self.surface.opacity * hit.coverage,
            d_point=d_point,
            place=hit.place,
            d_place=hit.d_place,
        )


class Caster(AbstractModule):
    """What of a surface casts shadows: its shape, whatever it looks like.

    **Arguments:**

    - `shape`: in its own frame.
    - `opacity`: the part of the light that it stops.
    - `frames`: world from shape, the outermost first.
    - `number`: of the surface in its scene.
    """

    shape: AbstractShape
    opacity: Float[Array, ""]
    frames: tuple[AbstractTransform, ...]
    number: Int[Array, ""]

    def stops(self, ray: Ray, own: Int[Array, ""]) -> Scalar:
        """The part of a shadow ray's cone that the shape stops.

        **Arguments:**

        - `ray`: one ray, in the world.
        - `own`: the number of the surface on which it begins. A convex shape is never in its own
          way: its far side is turned away from the light.

        **Returns:**

        Between 0 and 1.
        """
        stopped = self.opacity * self.shape.coverage(_into(self.frames, ray))
        return jnp.where(self.number == own, 0, stopped) if self.shape.is_convex else stopped


def _into(frames: Sequence[AbstractTransform], ray: Ray) -> Ray:
    """A ray of the world in the innermost frame; `t` keeps its meaning."""
    for frame in frames:
        ray = transform_ray(frame.inverse(), ray)
    return ray


def _turn_normal(matrix: Matrix3, normal: Any) -> Any:
    return safe_normalise(rotate(inverse_matrix(matrix).T, normal))


class Stage(AbstractModule):
    """The surfaces and lights of a scene, ready to be asked.

    **Arguments:**

    - `groups`: surfaces of one structure each, stacked along a leading axis.
    - `casters`: the same surfaces, stacked by the structure of their shapes alone.
    - `lights`: in the world.
    """

    groups: tuple[Placed, ...]
    casters: tuple[Caster, ...]
    lights: tuple[AbstractLight, ...]


def set_stage(root: Any) -> Stage:
    """Gathers the surfaces and lights of a scene, wherever in the tree they are.

    Surfaces that have the same structure are stacked, so that a hundred spheres compile like one.

    **Arguments:**

    - `root`: of the scene; frozen wrappers are opened.

    **Returns:**

    The stage.
    """
    surfaces: list[Placed] = []
    lights: list[AbstractLight] = []
    _gather(unfreeze(root), (), surfaces, lights)
    casters = [Caster(x.surface.shape, x.surface.opacity, x.frames, x.number) for x in surfaces]
    return Stage(_stack(surfaces), _stack(casters), tuple(lights))


def is_lit(root: Any) -> bool:
    """Whether there is any light in a scene: its numbers are then linear.

    **Arguments:**

    - `root`: of the scene.

    **Returns:**

    True if there is one.
    """
    return any(isinstance(node, AbstractLight) for node in _ends(root))


def has_surfaces(root: Any) -> bool:
    """Whether there is any surface in a scene.

    **Arguments:**

    - `root`: of the scene.

    **Returns:**

    True if there is one.
    """
    return any(isinstance(node, Surface) for node in _ends(root))


def _ends(node: Any) -> list[Any]:
    """Everything in the tree that holds no further nodes."""
    if is_frozen(node):
        return _ends(node.value)
    if isinstance(node, Transformed):
        return _ends(node.child)
    if isinstance(node, Group):
        return [end for child in node.children.values() for end in _ends(child)]
    return [node]


def _gather(
    node: Any,
    frames: tuple[AbstractTransform, ...],
    surfaces: list[Placed],
    lights: list[AbstractLight],
) -> None:
    node = node.child if isinstance(node, Detailed) else node
    if isinstance(node, Transformed):
        _gather(node.child, (*frames, node.transform), surfaces, lights)
    elif isinstance(node, Group):
        for _, child in sorted(node.children.items()):
            _gather(child, frames, surfaces, lights)
    elif isinstance(node, Surface):
        surfaces.append(Placed(node, frames, jnp.asarray(len(surfaces))))
    elif isinstance(node, AbstractLight):
        for frame in reversed(frames):
            node = node.moved(frame)
        lights.append(node)


def _stack(members: Sequence[Any]) -> tuple[Any, ...]:
    alike: dict[Any, list[Any]] = {}
    for member in members:
        arrays, rest = eqx.partition(member, eqx.is_array)
        shapes = tuple((leaf.shape, leaf.dtype) for leaf in jax.tree.leaves(arrays))
        kind = jax.tree.structure(member), shapes, tuple(jax.tree.leaves(rest))
        alike.setdefault(kind, []).append(member)
    return tuple(_join(members) for members in alike.values())


def _join(members: list[Any]) -> Any:
    arrays = [eqx.filter(member, eqx.is_array) for member in members]
    rest = eqx.filter(members[0], eqx.is_array, inverse=True)
    return eqx.combine(jax.tree.map(lambda *leaves: jnp.stack(leaves), *arrays), rest)
