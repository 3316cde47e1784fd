from typing import Any

import jax.numpy as jnp

from .._typing import PyTree, RandomKey
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

    def medium(self, section: Section, prepared: PyTree, *, key: RandomKey | None = None) -> Medium:
        local = transform_section(self.transform.inverse(), section)
        medium = self.child.medium(local, prepared, key=key)
        stretch = safe_norm(local.gaussian.direction) / safe_norm(section.gaussian.direction)
        return Medium(medium.density * jnp.asarray(stretch), medium.rgb)
