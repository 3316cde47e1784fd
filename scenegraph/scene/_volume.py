import equinox as eqx

from .._typing import PyTree, RandomKey
from ..fields import AbstractConditionedField, AbstractField
from ..images import AbstractColorSpace, SRGB
from ..rays import Medium, overlap, Ray, Section, Span
from ..shapes import Box
from ._node import AbstractNode


class Volume(AbstractNode):
    """A field that fills a box, or the whole ray.

    **Arguments:**

    - `field`: density and colour.
    - `bounds`: where the field is looked at; `None` for all of each ray's `near` to `far`.
    - `space`: which numbers the field's colours are. In a scene with lights they are decoded to
      linear light; in one without, all numbers are taken as they are.
    """

    field: AbstractField
    bounds: Box | None = eqx.field(default_factory=Box)
    space: AbstractColorSpace = SRGB()

    def span(self, ray: Ray) -> Span:
        return Span(ray.near, ray.far) if self.bounds is None else self.bounds.span(ray)

    def prepare(self, ray: Ray) -> PyTree:
        if isinstance(self.field, AbstractConditionedField):
            return self.span(ray), self.field.condition(ray.view)
        return self.span(ray), ray.view

    def medium(self, section: Section, prepared: PyTree, *, key: RandomKey | None = None) -> Medium:
        span, condition = prepared
        medium = self._ask(section, condition, key)
        if self.bounds is None:
            return medium
        share = overlap(section, span)
        return eqx.tree_at(lambda m: m.density, medium, share * medium.density)

    def _ask(self, section: Section, condition: PyTree, key: RandomKey | None) -> Medium:
        if isinstance(self.field, AbstractConditionedField):
            return self.field.medium(section.gaussian, condition, key=key)
        return self.field(section.gaussian, condition, key=key)
