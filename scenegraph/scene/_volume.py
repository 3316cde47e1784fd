from typing import Any

import equinox as eqx

from .._typing import Array, Bool, PyTree, RandomKey, Scalar
from ..fields import AbstractConditionedField, AbstractField
from ..images import AbstractColorSpace, SRGB
from ..numerics import Frozen, unfreeze
from ..rays import Medium, overlap, Ray, Section, Span
from ..shapes import Box
from ._node import AbstractNode
from ._occupancy import Occupancy


def _frozen(occupancy: Any) -> Any:
    return Frozen(occupancy) if isinstance(occupancy, Occupancy) else occupancy


class Volume(AbstractNode):
    """A field that fills a box, or all of space.

    **Arguments:**

    - `field`: the field of density and colour, in the volume's own frame.
    - `bounds`: the box outside of which the field is not sampled; `None` for all of each ray's
      `near` to `far`.
    - `space`: the colour space of the field. In a scene with lights its colours are decoded to
      linear light; in one without, all numbers are taken as they are.
    - `occupancy`: the cells of the bounds that are not empty; it is frozen.
    - `proposal`: a cheaper field that guides sampling, for `Hierarchical(proposals=True)`; by
      default the field itself.
    """

    field: AbstractField
    bounds: Box | None = eqx.field(default_factory=Box)
    space: AbstractColorSpace = SRGB()
    occupancy: Occupancy | Frozen | None = eqx.field(converter=_frozen, default=None)
    proposal: AbstractField | None = None

    def __check_init__(self):
        if self.bounds is None and self.occupancy is not None:
            raise ValueError("an `occupancy` is of the cells of `bounds`, which are missing.")

    def span(self, ray: Ray) -> Span:
        """Returns the part of a ray in the bounds; rays, here and below, in the volume's frame."""
        return Span(ray.near, ray.far) if self.bounds is None else self.bounds.span(ray)

    def prepare(self, ray: Ray) -> PyTree:
        """Computes what all samples of a ray share."""
        if isinstance(self.field, AbstractConditionedField):
            return self.span(ray), self.field.condition(ray.view)
        return self.span(ray), ray.view

    def propose(self, section: Section, prepared: PyTree) -> Scalar:
        """Returns the density of the cheaper field."""
        density = (self.proposal or self.field).density(section.gaussian)
        return density if self.bounds is None else overlap(section, prepared[0]) * density

    def occupied(self, ray: Ray, part: Span) -> Bool[Array, ""]:
        """Returns false where a part of a ray is known to be empty."""
        span = self.span(ray)
        met = (part.near < span.far) & (part.far > span.near)
        if self.bounds is None or self.occupancy is None:
            return met
        point = ray.at((part.near + part.far) / 2)
        place = (point - self.bounds.lower) / (self.bounds.upper - self.bounds.lower)
        return met & unfreeze(self.occupancy).at(place)

    def medium(self, section: Section, prepared: PyTree, *, key: RandomKey | None = None) -> Medium:
        """Returns density and colour of one sample; none outside of the bounds."""
        span, condition = prepared
        if isinstance(self.field, AbstractConditionedField):
            medium = self.field.medium(section.gaussian, condition, key=key)
        else:
            medium = self.field(section.gaussian, condition, key=key)
        if self.bounds is None:
            return medium
        share = overlap(section, span)
        return eqx.tree_at(lambda m: m.density, medium, share * medium.density)
