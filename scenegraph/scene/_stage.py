from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from .._typing import Matrix3, PyTree, Scalar
from ..lights import AbstractLight
from ..numerics import AbstractModule, dot, is_frozen, safe_normalise, unfreeze
from ..rays import Hit, Ray, transform_ray
from ..transforms import AbstractTransform, inverse_matrix, rotate
from ._group import Group
from ._surface import Surface
from ._transformed import Transformed


class Placed(AbstractModule):
    """A surface with the transforms above it.

    **Arguments:**

    - `surface`: in its own frame.
    - `frames`: world from surface, the outermost first.
    """

    surface: Surface
    frames: tuple[AbstractTransform, ...]

    def into(self, ray: Ray) -> Ray:
        """A ray of the world in the surface's frame.

        **Arguments:**

        - `ray`: one ray.

        **Returns:**

        The ray; `t` keeps its meaning.
        """
        for frame in self.frames:
            ray = transform_ray(frame.inverse(), ray)
        return ray

    def coverage(self, ray: Ray) -> Scalar:
        """The part of a cone that the surface stops.

        **Arguments:**

        - `ray`: one ray, in the world.

        **Returns:**

        Between 0 and 1.
        """
        return self.surface.opacity * self.surface.shape.coverage(self.into(ray))

    def pieces(self, ray: Ray) -> Hit:
        """Where a ray meets the smooth pieces of the surface, seen from the world.

        **Arguments:**

        - `ray`: one ray, in the world.

        **Returns:**

        A hit with a leading axis over pieces; normals are turned to the eye.
        """
        return jax.vmap(self._outwards, (None, 0))(ray, self.surface.shape.pieces(self.into(ray)))

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


def _turn_normal(matrix: Matrix3, normal: Any) -> Any:
    return safe_normalise(rotate(inverse_matrix(matrix).T, normal))


class Stage(AbstractModule):
    """The surfaces and lights of a scene, ready to be asked.

    **Arguments:**

    - `groups`: surfaces of one structure each, stacked along a leading axis.
    - `lights`: in the world.
    """

    groups: tuple[Placed, ...]
    lights: tuple[AbstractLight, ...]

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many surfaces each group has."""
        return tuple(group.surface.opacity.shape[0] for group in self.groups)


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
    return Stage(_stack(surfaces), tuple(lights))


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
    if isinstance(node, Transformed):
        _gather(node.child, (*frames, node.transform), surfaces, lights)
    elif isinstance(node, Group):
        for _, child in sorted(node.children.items()):
            _gather(child, frames, surfaces, lights)
    elif isinstance(node, Surface):
        surfaces.append(Placed(node, frames))
    elif isinstance(node, AbstractLight):
        for frame in reversed(frames):
            node = node.moved(frame)
        lights.append(node)


def _stack(surfaces: Sequence[Placed]) -> tuple[Placed, ...]:
    alike: dict[Any, list[Placed]] = {}
    for placed in surfaces:
        arrays, rest = eqx.partition(placed, eqx.is_array)
        shapes = tuple((leaf.shape, leaf.dtype) for leaf in jax.tree.leaves(arrays))
        alike.setdefault((jax.tree.structure(placed), shapes, _hashable(rest)), []).append(placed)
    return tuple(_join(members) for members in alike.values())


def _hashable(rest: PyTree) -> tuple:
    return tuple(jax.tree.leaves(rest))


def _join(members: list[Placed]) -> Placed:
    arrays = [eqx.filter(member, eqx.is_array) for member in members]
    rest = eqx.filter(members[0], eqx.is_array, inverse=True)
    return eqx.combine(jax.tree.map(lambda *leaves: jnp.stack(leaves), *arrays), rest)
