"""`Instances`: one node that stands for many copies of what is below it."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.tree_util as jtu
import numpy as np
from jax.core import Tracer

from .._typing import Array, ArrayLike, PyTree
from ..cameras import AbstractCamera
from ..numerics import AbstractModule, as_float_leaf
from ..transforms import AbstractTransform, Affine, as_transform
from ._node import AbstractNode, check_node
from ._paths import path_of


class Instances(AbstractNode):
    """Copies of one node at many transforms, as one node whose transforms are stacked leaves.

    The copies share all leaves of the child, and their gradients are added, except those that are
    given for each copy. A thousand copies are compiled like one, and a large field is held once.
    Paths omit the child, as in a `Transformed`.

    **Arguments:**

    - `child`: the node to be copied: a surface, a volume, a light, or a group of these.
    - `transforms`: transforms of one kind, from the child's frame to the frame around it: a
      sequence of them or of 4x4 matrices, an array `copies 4 4`, or one transform whose arrays
      have a leading axis, as from `jax.vmap(sg.Affine)(matrices, offsets)`.
    - `values`: arrays by the path of a leaf of the child; with a leading axis over the copies, of
      which each gets its own.

    **Errors:**

    `ValueError` for no copies, transforms of several kinds or lengths, a path at which the child
    has no leaf, values of another shape, and a camera in the child.

    Example: a row of balls of three colours.

    ```python
    places = [sg.Similarity(translation=[x, 0.0, 0.0]) for x in (-2.0, 0.0, 2.0)]
    ball = sg.Surface(sg.Sphere(), sg.Lambert([0.5, 0.5, 0.5]))
    row = sg.Instances(ball, places, {"shader.albedo.color": jnp.eye(3)})
    ```
    """

    child: Any
    transforms: AbstractTransform
    values: dict[str, Array]

    unnamed: ClassVar[str] = "child"

    def __init__(
        self,
        child: Any,
        transforms: AbstractTransform | Sequence[Any] | ArrayLike,
        values: Mapping[str, Any] | None = None,
    ):
        self.child = child
        self.transforms = _stacked(transforms)
        self.values = {path: as_float_leaf(x) for path, x in (values or {}).items()}

    def __check_init__(self):
        check_node(self.child, "the child of an Instances")
        is_camera = lambda node: isinstance(node, AbstractCamera)
        if any(map(is_camera, jax.tree.leaves(self.child, is_leaf=is_camera))):
            raise ValueError("there is a camera in the child of an Instances; put it beside.")
        _check_values(self.child, self.values, _count(self.transforms))

    @property
    def count(self) -> int:
        """The number of copies."""
        return _count(self.transforms)


class PerCopy(AbstractModule):
    """The values of all copies, along a leading axis, in the place of a leaf."""

    array: Any
    level: int = eqx.field(static=True)  # how many further `Instances` are around its own


def is_per_copy(node: Any) -> bool:
    """Returns true for the values of all copies of a leaf."""
    return isinstance(node, PerCopy)


def unfold(node: Instances, level: int) -> tuple[Any, AbstractTransform]:
    """Returns the child and the transform of all copies, with values in the leaves' places."""

    def own(keys: tuple, leaf: Any) -> Any:
        path = path_of(node.child, keys)
        return PerCopy(node.values[path], level) if path in node.values else leaf

    child = jtu.tree_map_with_path(own, node.child) if node.values else node.child
    return child, jax.tree.map(lambda x: PerCopy(x, level), node.transforms)


def _stacked(transforms: AbstractTransform | Sequence[Any] | ArrayLike) -> AbstractTransform:
    if isinstance(transforms, AbstractTransform):
        return transforms
    if not isinstance(transforms, Sequence):
        return _affine_maps(as_float_leaf(transforms))
    transforms = [as_transform(x) for x in transforms]
    alike = {(jax.tree.structure(x), tuple(map(jnp.shape, jax.tree.leaves(x)))) for x in transforms}
    if len(alike) != 1:
        raise ValueError(
            f"the transforms of an Instances are of one kind, and at least one; got {len(alike)} "
            f"kinds. Use `Affine` for all of them."
        )
    return jax.tree.map(lambda *xs: jnp.stack(xs), *transforms)


def _affine_maps(matrices: Array) -> AbstractTransform:
    """Makes one `Affine` with a leading axis of matrices in a row."""
    if matrices.shape[1:] != (4, 4) or not len(matrices):
        raise ValueError(
            f"`Instances.transforms` as an array needs the shape (copies, 4, 4); got "
            f"{matrices.shape}."
        )
    if not isinstance(matrices, Tracer) and not np.allclose(matrices[:, 3], [0, 0, 0, 1]):
        raise ValueError(
            "the last row of each matrix in `Instances.transforms` must be 0, 0, 0, 1."
        )
    return jax.vmap(Affine)(matrices[:, :3, :3], matrices[:, :3, 3])


def _count(transforms: PyTree) -> int:
    counts = {jnp.shape(x)[:1] for x in jax.tree.leaves(transforms)}
    if len(counts) != 1 or counts == {()}:
        raise ValueError(
            "the arrays of an Instances' transforms need one leading axis over the copies: give a "
            "sequence of transforms, or `jax.vmap(sg.Affine)(matrices, offsets)`."
        )
    return counts.pop()[0]


def _check_values(child: Any, values: dict[str, Array], count: int) -> None:
    leaves = jtu.tree_flatten_with_path(child)[0]
    shapes = {path_of(child, keys): jnp.shape(leaf) for keys, leaf in leaves}
    for path, array in values.items():
        if path not in shapes:
            known = ", ".join(sorted(filter(None, shapes)))
            raise ValueError(f"the child has no leaf at {path!r}; its leaves: {known}.")
        if array.shape != (count, *shapes[path]):
            raise ValueError(
                f"the values of {path!r} need the shape {(count, *shapes[path])}, one for each of "
                f"{count} copies; got {array.shape}."
            )
