import abc

import jax.numpy as jnp
from equinox import AbstractClassVar

from .._typing import Matrix3, Vector
from ..numerics import AbstractModule


def rotate(matrix: Matrix3, vector: Vector) -> Vector:
    """Applies a matrix to one vector, in full precision on every device."""
    # Not a matrix product, which some devices compute from rounded numbers.
    return jnp.sum(matrix * vector, axis=-1)


def inverse_matrix(matrix: Matrix3) -> Matrix3:
    """Inverts a 3x3 matrix by cross products of its columns; not finite where it is singular."""
    # The inverse has the rows b x c, c x a, a x b, divided by det = a . (b x c).
    a, b, c = matrix.T
    rows = jnp.stack([jnp.cross(b, c), jnp.cross(c, a), jnp.cross(a, b)])
    return rows / jnp.sum(a * rows[0])


class AbstractTransform(AbstractModule):
    """An affine map from a node's own frame ("child") to the frame around it ("parent").

    `a @ b` applies `b` first, then `a`.
    """

    is_similarity: AbstractClassVar[bool]

    @abc.abstractmethod
    def linear(self) -> Matrix3:
        """Returns the linear part, which maps directions.

        **Returns:**

        The matrix, `3 3`.
        """

    @abc.abstractmethod
    def offset(self) -> Vector:
        """Returns the child's origin in the parent.

        **Returns:**

        The point, `3`.
        """

    def point(self, point: Vector) -> Vector:
        """Maps a point from child to parent.

        **Arguments:**

        - `point`: a point in the child's frame, `3`.

        **Returns:**

        The same point in the parent's frame.
        """
        return rotate(self.linear(), point) + self.offset()

    def direction(self, direction: Vector) -> Vector:
        """Maps a direction from child to parent; it is not normalised.

        **Arguments:**

        - `direction`: a direction in the child's frame, `3`.

        **Returns:**

        The same direction in the parent's frame.
        """
        return rotate(self.linear(), direction)

    def inverse(self) -> "AbstractTransform":
        """Returns the map from parent to child.

        **Returns:**

        A transform with the same `is_similarity`.
        """
        return Inverse(self)

    def __matmul__(self, inner: "AbstractTransform") -> "AbstractTransform":
        if not isinstance(inner, AbstractTransform):
            raise TypeError(
                f"`@` composes two transforms; got a {type(inner).__name__}. Points are mapped by "
                f"`transform.point(...)`."
            )
        return Composed(self, inner)


class Inverse(AbstractTransform):
    """The inverse of another transform; it is a similarity if that one is."""

    transform: AbstractTransform

    def __init__(self, transform: AbstractTransform):
        self.transform = transform

    @property
    def is_similarity(self) -> bool:
        """True if angles are kept."""
        return self.transform.is_similarity

    def linear(self) -> Matrix3:
        return inverse_matrix(self.transform.linear())

    def offset(self) -> Vector:
        # x = A^-1 (y - b) = A^-1 y - A^-1 b
        return -rotate(self.linear(), self.transform.offset())


class Composed(AbstractTransform):
    """Two transforms, `inner` first; a similarity if both are. Both keep their leaves."""

    outer: AbstractTransform
    inner: AbstractTransform

    def __init__(self, outer: AbstractTransform, inner: AbstractTransform):
        self.outer, self.inner = outer, inner

    @property
    def is_similarity(self) -> bool:
        """True if angles are kept."""
        return self.outer.is_similarity and self.inner.is_similarity

    def linear(self) -> Matrix3:
        return jnp.matmul(self.outer.linear(), self.inner.linear(), precision="highest")

    def offset(self) -> Vector:
        # A (B x + b) + a = A B x + (A b + a)
        return self.outer.point(self.inner.offset())
