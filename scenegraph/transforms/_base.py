import abc

import jax.numpy as jnp
from equinox import AbstractClassVar

from .._typing import Matrix3, Vector
from ..numerics import AbstractModule


def rotate(matrix: Matrix3, vector: Vector) -> Vector:
    """Applies a matrix to one vector, in full precision on every device.

    **Arguments:**

    - `matrix`: 3x3.
    - `vector`: a point or direction.

    **Returns:**

    The product.
    """
    return jnp.sum(matrix * vector, axis=-1)


def inverse_matrix(matrix: Matrix3) -> Matrix3:
    """The inverse of a 3x3 matrix by cross products of its columns.

    **Arguments:**

    - `matrix`: not singular.

    **Returns:**

    Its inverse; not finite where the matrix is singular.
    """
    a, b, c = matrix.T
    rows = jnp.stack([jnp.cross(b, c), jnp.cross(c, a), jnp.cross(a, b)])
    return rows / jnp.sum(a * rows[0])


class AbstractTransform(AbstractModule):
    """An affine map from a node's own frame ("child") to the frame around it ("parent")."""

    is_similarity: AbstractClassVar[bool]

    @abc.abstractmethod
    def linear(self) -> Matrix3:
        """The 3x3 part: what the map does to directions.

        **Returns:**

        The matrix.
        """

    @abc.abstractmethod
    def offset(self) -> Vector:
        """Where the child's origin lies in the parent.

        **Returns:**

        The point.
        """

    def point(self, point: Vector) -> Vector:
        """Maps a point from child to parent.

        **Arguments:**

        - `point`: in the child's frame.

        **Returns:**

        The same point in the parent's frame.
        """
        return rotate(self.linear(), point) + self.offset()

    def direction(self, direction: Vector) -> Vector:
        """Maps a direction from child to parent; it is not normalised.

        **Arguments:**

        - `direction`: in the child's frame.

        **Returns:**

        The same direction in the parent's frame.
        """
        return rotate(self.linear(), direction)

    def inverse(self) -> "AbstractTransform":
        """The map from parent to child.

        **Returns:**

        A transform with the same `is_similarity`.
        """
        return Inverse(self)


class Inverse(AbstractTransform):
    """The inverse of another transform; it is a similarity if that one is.

    **Arguments:**

    - `transform`: what to invert.
    """

    transform: AbstractTransform

    def __init__(self, transform: AbstractTransform):
        self.transform = transform

    @property
    def is_similarity(self) -> bool:
        """Whether angles are kept."""
        return self.transform.is_similarity

    def linear(self) -> Matrix3:
        return inverse_matrix(self.transform.linear())

    def offset(self) -> Vector:
        return -rotate(self.linear(), self.transform.offset())
