from typing import Any

import jax.numpy as jnp

from .._typing import Array, Bool, PyTree, RandomKey, Scalar
from ..numerics import safe_norm
from ..rays import Medium, Ray, Section, Span, transform_ray, transform_section
from ..transforms import AbstractTransform
from ._node import AbstractNode, check_node


class Transformed(AbstractNode):
    """A node, moved: the same node asked in another frame. Paths look through it.

    The density of what is inside is per unit length of its own frame, so that scaling a whole
    scene and its camera together leaves the picture as it is.

    **Arguments:**

    - `child`: a node or a camera.
    - `transform`: from the child's frame to the frame around it.
    """

    child: Any
    transform: AbstractTransform

    def __check_init__(self):
        check_node(self.child, "the child of a Transformed")

    def span(self, ray: Ray) -> Span:
        return self.child.span(transform_ray(self.transform.inverse(), ray))

    def prepare(self, ray: Ray) -> PyTree:
        return self.child.prepare(transform_ray(self.transform.inverse(), ray))

    def propose(self, section: Section, prepared: PyTree) -> Scalar:
        local = transform_section(self.transform.inverse(), section)
        return self.child.propose(local, prepared) * _stretch(local, section)

    def occupied(self, ray: Ray, part: Span) -> Bool[Array, ""]:
        return self.child.occupied(transform_ray(self.transform.inverse(), ray), part)

    def medium(self, section: Section, prepared: PyTree, *, key: RandomKey | None = None) -> Medium:
        local = transform_section(self.transform.inverse(), section)
        medium = self.child.medium(local, prepared, key=key)
        return Medium(medium.density * _stretch(local, section), medium.rgb)


def _stretch(local: Section, section: Section) -> Scalar:
    """How much longer the same part of a ray is in the child's frame."""
    lengths = safe_norm(local.gaussian.direction), safe_norm(section.gaussian.direction)
    return jnp.asarray(lengths[0] / lengths[1])
