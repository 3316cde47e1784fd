"""The chosen leaves of a scene as one tangent vector."""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import jaxlie

from .._typing import Array, Float, PyTree
from ..numerics import in_full_precision
from ..scene import label_leaves
from ..transforms import Similarity


class Unknowns(NamedTuple):
    """The chosen leaves, all others, and for each chosen one whether it is a quaternion."""

    free: PyTree
    fixed: PyTree
    turns: tuple[bool, ...]

    def sizes(self) -> tuple[int, ...]:
        """Returns the number of unknowns of each leaf: three for a quaternion."""
        pairs = zip(jax.tree.leaves(self.free), self.turns, strict=True)
        return tuple(3 * x.size // 4 if t else x.size for x, t in pairs)

    def size(self) -> int:
        """Returns the number of all unknowns."""
        return sum(self.sizes())

    def zeros(self) -> Float[Array, " unknowns"]:
        """Returns the tangent vector that moves nothing."""
        return jnp.zeros(self.size(), jnp.result_type(*jax.tree.leaves(self.free)))

    def scene(self) -> PyTree:
        """Returns the scene."""
        return eqx.combine(self.free, self.fixed)

    def moved(self, delta: Float[Array, " unknowns"]) -> "Unknowns":
        """Moves the leaves: x + d, and q exp(d) for quaternions, which keeps their length."""
        leaves, structure = jax.tree.flatten(self.free)
        sizes = self.sizes()
        # Leaf i has the numbers from sum_{j<i} n_j on.
        starts = [sum(sizes[:i]) for i in range(len(sizes))]
        parts = [delta[a : a + n] for a, n in zip(starts, sizes, strict=True)]
        rows = zip(leaves, parts, self.turns, strict=True)
        return self._replace(free=jax.tree.unflatten(structure, [_moved(*row) for row in rows]))


@in_full_precision
def _moved(leaf: Array, part: Array, is_turn: bool) -> Array:
    if not is_turn:
        return leaf + part.reshape(leaf.shape).astype(leaf.dtype)
    # q exp(d): a rotation vector in the frame that is turned.
    turns = jax.vmap(lambda q, d: (jaxlie.SO3(q) @ jaxlie.SO3.exp(d)).wxyz)
    return turns(leaf.reshape(-1, 4), part.reshape(-1, 3)).astype(leaf.dtype).reshape(leaf.shape)


def as_unknowns(scene: PyTree, chosen: PyTree) -> tuple[Unknowns, tuple[str, ...]]:
    """Splits a scene into the chosen leaves and the others; returns also the chosen paths."""
    free, fixed = eqx.partition(scene, chosen)
    turns = jax.tree.leaves(eqx.filter(_quaternions(scene), chosen))
    paths = jax.tree.leaves(eqx.filter(label_leaves(scene, str), chosen))
    if not paths:
        raise ValueError(
            "there is nothing to solve for: no floating leaf of the scene is trainable. Name some "
            'in `trainable`, such as `["cam.focal"]`, or `thaw` them.'
        )
    return Unknowns(free, fixed, tuple(turns)), tuple(paths)


def _quaternions(scene: PyTree) -> PyTree:
    """Marks the leaves that are quaternions, whose length means nothing."""

    def mark(node: Any) -> Any:
        marks = jax.tree.map(lambda _: False, node)
        if not isinstance(node, Similarity):
            return marks
        return eqx.tree_at(
            lambda x: x.rotation,
            marks,
            replace_fn=lambda part: jax.tree.map(lambda _: True, part),
        )

    return jax.tree.map(mark, scene, is_leaf=lambda x: isinstance(x, Similarity))
