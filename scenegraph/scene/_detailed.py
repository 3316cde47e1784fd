import dataclasses
from typing import Any

import equinox as eqx
import jax

from .._typing import Array, Bool, PyTree, RandomKey, Scalar, Vector
from ..numerics import safe_normalise
from ..rays import Medium, Ray, Section, Span
from ._node import AbstractNode


class Detailed(AbstractNode):
    """The root of a scene of which more is asked than colour and mean depth.

    Its media have normals: where the density around falls off fastest. Surfaces in it keep theirs.

    **Arguments:**

    - `child`: the root.
    """

    child: Any

    def span(self, ray: Ray) -> Span:
        return self.child.span(ray)

    def prepare(self, ray: Ray) -> PyTree:
        return self.child.prepare(ray)

    def propose(self, section: Section, prepared: PyTree) -> Scalar:
        return self.child.propose(section, prepared)

    def occupied(self, ray: Ray, part: Span) -> Bool[Array, ""]:
        return self.child.occupied(ray, part)

    def medium(self, section: Section, prepared: PyTree, *, key: RandomKey | None = None) -> Medium:
        def density(mean: Vector) -> tuple[Scalar, Medium]:
            moved = eqx.tree_at(lambda s: s.gaussian.mean, section, mean)
            medium = self.child.medium(moved, prepared, key=key)
            return medium.density, medium

        slope, medium = jax.grad(density, has_aux=True)(section.gaussian.mean)
        return dataclasses.replace(medium, normal=-safe_normalise(slope))
