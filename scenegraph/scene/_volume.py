from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp

from .._typing import Array, Bool, Float, PyTree, RandomKey, Scalar, Vector
from ..encodings import Contraction
from ..fields import (
    AbstractAppearanceField,
    AbstractBoundedField,
    AbstractConditionedField,
    AbstractField,
)
from ..images import AbstractColorSpace, SRGB
from ..numerics import AbstractModule, Frozen, safe_norm, unfreeze
from ..rays import Gaussian, Medium, overlap, Ray, Section, Span
from ..shapes import Box
from ._node import AbstractNode
from ._occupancy import Occupancy


# The optical depth of a far background, and how near to the end of a ray a part has to end, as a
# share, to be its last.
_OPAQUE, _AT_END = 1e3, 0.9


def _frozen(occupancy: Any) -> Any:
    return Frozen(occupancy) if isinstance(occupancy, Occupancy) else occupancy


class FieldReach(AbstractModule):
    """Bounds of a volume that are as far as its field reaches, wherever that is moved."""


def _as_bounds(bounds: Any, field: AbstractField) -> Box | FieldReach | None:
    """Converts what a user passes; fields that do not say how far they reach get a box."""
    if not isinstance(bounds, str | FieldReach):
        return bounds
    opened = field.value if isinstance(field, Frozen) else field
    says = isinstance(opened, AbstractBoundedField)
    own = getattr(type(opened), "reach", AbstractField.reach)
    return FieldReach() if says or own is not AbstractField.reach else Box()


class Pace(AbstractModule):
    """A ray's way through contracted space: about `t = middle`, at `rate` units per unit of `t`."""

    middle: Float[Array, "*rays"]
    rate: Float[Array, "*rays"]


class Volume(AbstractNode):
    """A field that fills a box, or all of space.

    With a `contraction`, all of space is brought into a ball, in which the field has its density:
    as in a `Transformed`, densities are per unit length of the field's frame.

    **Arguments:**

    - `field`: the field of density and colour, in the volume's own frame.
    - `bounds`: the box outside of which the field is not sampled; `"auto"` for as far as the field
      reaches, and from -1.5 to 1.5 along each axis if it does not say; `None` for all of each ray's
      `near` to `far`.
    - `space`: the colour space of the field. In a scene with lights its colours are decoded to
      linear light; in one without, all numbers are taken as they are.
    - `occupancy`: the cells of the bounds, or of the cube about the contraction's ball, that are
      not empty; it is frozen.
    - `proposal`: a cheaper field that guides sampling, for `Hierarchical(proposals=True)`; by
      default the field itself.
    - `contraction`: the map of all of space to a ball, for a volume without `bounds`.
    - `far_background`: if true, the last part of every ray is opaque: what the field shows there is
      infinitely far away, and hides the scene's background; static.
    - `integrator`: the integrator of media with which the volume is sampled in any scene, unless
      `render` or the scene names another; `None` to choose one.
    """

    field: AbstractField
    bounds: Box | FieldReach | None
    space: AbstractColorSpace
    occupancy: Occupancy | Frozen | None = eqx.field(converter=_frozen)
    proposal: AbstractField | None = None
    contraction: Contraction | None = None
    far_background: bool = eqx.field(static=True, default=False)
    integrator: Any = None

    def __init__(
        self,
        field: AbstractField,
        bounds: Box | FieldReach | Literal["auto"] | None = "auto",
        space: AbstractColorSpace = SRGB(),
        occupancy: Occupancy | Frozen | None = None,
        proposal: AbstractField | None = None,
        contraction: Contraction | None = None,
        far_background: bool = False,
        integrator: Any = None,
    ):
        self.field, self.bounds = field, _as_bounds(bounds, field)
        self.space, self.occupancy, self.proposal = space, occupancy, proposal
        self.contraction, self.far_background = contraction, far_background
        self.integrator = integrator

    def __check_init__(self):
        if self.contraction is None and self.far_background:
            raise ValueError("a `far_background` needs a `contraction`; got `contraction=None`.")
        if self.contraction is not None and self.bounds is not None:
            raise ValueError("a `contraction` takes all of space: pass `bounds=None` with it.")
        if self.bounds is None and self.contraction is None and self.occupancy is not None:
            raise ValueError("an `occupancy` is of the cells of `bounds`, which are missing.")

    def span(self, ray: Ray) -> Span:
        """Returns the part of a ray in the bounds; rays, here and below, in the volume's frame."""
        box = self.box()
        if box is None:
            return Span(ray.near, ray.far)
        return (_widened(box, ray) if isinstance(self.bounds, FieldReach) else box).span(ray)

    def box(self) -> Box | None:
        """Returns the bounds, those as far as the field reaches too; `None` without any."""
        if not isinstance(self.bounds, FieldReach):
            return self.bounds
        return self.field.reach() or Box()

    def corners(self) -> tuple[Array, Array]:
        """Returns two corners of the cells of the occupancy, in the field's frame."""
        if self.contraction is not None:
            corner = jnp.full(3, self.contraction.radius)
            return -corner, corner
        bounds: Any = self.box()
        return bounds.lower, bounds.upper

    def pace(self, ray: Ray) -> Pace:
        """Returns how a ray passes the middle of contracted space."""
        # |o + t d|^2 = b^2 + |d|^2 (t - m)^2, and m = -o.d / |d|^2 is nearest to the origin.
        square = jnp.maximum(1e-20, jnp.sum(ray.direction**2))
        return Pace(-jnp.sum(ray.origin * ray.direction) / square, jnp.sqrt(square))

    def prepare(self, ray: Ray) -> PyTree:
        """Computes what all samples of a ray share."""
        field, condition = self.field, ray.view
        if isinstance(field, AbstractAppearanceField):
            condition = field.condition_on(ray.view, ray.appearance)
        elif isinstance(field, AbstractConditionedField):
            condition = field.condition(ray.view)
        if self.contraction is None:
            return self.span(ray), condition
        return self.span(ray), condition, (ray.origin, ray.direction)

    def propose(self, section: Section, prepared: PyTree) -> Scalar:
        """Returns the density of the cheaper field."""
        field = self.proposal or self.field
        if self.contraction is not None:
            bent = self.contraction.gaussian(section.gaussian)
            return self._unbent(field.density(bent), section, prepared)
        density = field.density(section.gaussian)
        return density if self.bounds is None else overlap(section, prepared[0]) * density

    def occupied(self, ray: Ray, part: Span) -> Bool[Array, ""]:
        """Returns false where a part of a ray is known to be empty."""
        span = self.span(ray)
        hit = (part.near < span.far) & (part.far > span.near)
        if self.occupancy is None:
            return hit
        occupied = hit & unfreeze(self.occupancy).at(self._cell(ray, part))
        # What is infinitely far away is in the last part of every ray.
        return occupied | (hit & _is_last(part.far, span)) if self.far_background else occupied

    def thickness(self, ray: Ray, part: Span) -> Scalar:
        """Returns the optical depth of a part of a ray, as far as the occupancy knows."""
        span = self.span(ray)
        # tau = sigma |J d| dt, with the derivative J of contraction in the middle of the part
        middle, length = ray.at((part.near + part.far) / 2), part.far - part.near
        direction, depth = ray.direction, jnp.ones_like(length)
        if self.contraction is not None:
            direction = self.contraction.direction(middle, direction)
        if self.occupancy is not None:
            # Occupancies hold sigma times the edge of a cell. The part is |J d| dt long there.
            known, (lower, upper) = unfreeze(self.occupancy), self.corners()
            edge = jnp.max((upper - lower) / jnp.asarray(known.thickness.shape))
            depth = jnp.maximum(0, known.thickness_at(self._cell(ray, part))) / edge
        depth = jnp.where((part.near < span.far) & (part.far > span.near), depth, 0)
        depth = depth * length * safe_norm(direction)
        if not self.far_background:
            return depth
        return jnp.where(_is_last(part.far, span), _OPAQUE, depth)

    def medium(self, section: Section, prepared: PyTree, *, key: RandomKey | None = None) -> Medium:
        """Returns density and colour of one sample; none outside of the bounds."""
        span, condition, *_ = prepared
        bent = section.gaussian
        if self.contraction is not None:
            bent = self.contraction.gaussian(bent)
        if isinstance(self.field, AbstractConditionedField):
            medium = self.field.medium(bent, condition, key=key)
        else:
            medium = self.field(bent, condition, key=key)
        if self.bounds is None and self.contraction is None:
            return medium
        if self.contraction is not None:
            density = self._unbent(medium.density, section, prepared)
            return eqx.tree_at(lambda m: m.density, medium, density)
        share = overlap(section, span)
        return eqx.tree_at(lambda m: m.density, medium, share * medium.density)

    def density_at(self, gaussian: Gaussian) -> Scalar:
        """Returns the density about a place of the volume's frame, by length there."""
        place = gaussian.mean
        if self.contraction is None:
            return self._is_inside(place) * self.field.density(gaussian)
        # The mean of |J d| over directions d is about tr J / 3.
        stretch = jnp.trace(self.contraction.linear(place)) / 3
        return stretch * self.field.density(self.contraction.gaussian(gaussian))

    def medium_at(self, gaussian: Gaussian, view: Vector) -> Medium:
        """Returns density and colour about a place of the volume's frame, seen along a unit `view`.

        The density is by length along the view.
        """
        place, bent, stretch = gaussian.mean, gaussian, self._is_inside(gaussian.mean)
        if self.contraction is not None:
            # sigma |J d|
            stretch = safe_norm(self.contraction.direction(place, view))
            bent = self.contraction.gaussian(gaussian)
        medium = self.field(bent, view)
        return eqx.tree_at(lambda m: m.density, medium, stretch * medium.density)

    def cells_at(self, places: Float[Array, "places 3"]) -> Bool[Array, " places"]:
        """Returns false for places of the volume's frame where rays take no samples."""
        inside = jax.vmap(self._is_inside)(places) > 0
        if self.occupancy is None:
            return inside
        return inside & jax.vmap(unfreeze(self.occupancy).at)(jax.vmap(self._cell_at)(places))

    def _is_inside(self, place: Vector) -> Scalar:
        """Returns one in the bounds, and zero outside of them."""
        if (box := self.box()) is None:
            return jnp.ones((), place.dtype)
        inside = jnp.all((place >= box.lower) & (place <= box.upper))
        return inside.astype(place.dtype)

    def _unbent(self, density: Scalar, section: Section, prepared: PyTree) -> Scalar:
        """Returns the density by length in the volume's frame, from that by contracted length."""
        span, _, (origin, direction) = prepared
        assert self.contraction is not None
        # sigma |f(x_1) - f(x_0)| / |x_1 - x_0|: exact also where one sample reaches very far.
        ends = [self.contraction.point(origin + t * direction) for t in (section.t0, section.t1)]
        length = jnp.maximum(1e-20, (section.t1 - section.t0) * safe_norm(direction))
        depth = density * safe_norm(ends[1] - ends[0])
        if self.far_background:
            depth = jnp.where(_is_last(section.t1, span), _OPAQUE, depth)
        return overlap(section, span) * depth / length

    def _cell(self, ray: Ray, part: Span) -> Array:
        """Returns the middle of a part of a ray, from 0 to 1 along the axes of the occupancy."""
        return self._cell_at(ray.at((part.near + part.far) / 2))

    def _cell_at(self, point: Vector) -> Vector:
        """Returns a place of the volume's frame, from 0 to 1 along the axes of the occupancy."""
        if self.contraction is not None:
            # From the cube of contracted space, -radius to radius along each axis, to 0 to 1.
            return (self.contraction.point(point) / self.contraction.radius + 1) / 2
        bounds: Any = self.box()
        return (point - bounds.lower) / (bounds.upper - bounds.lower)


def _widened(box: Box, ray: Ray) -> Box:
    """Enlarges a box that is not much larger than pixels, so that rays beside it meet it, too."""
    square = jnp.maximum(jnp.sum(ray.direction**2), jnp.finfo(ray.direction.dtype).tiny)
    t = jnp.sum(((box.lower + box.upper) / 2 - ray.origin) * ray.direction) / square
    sides = ray.d_origin + jnp.clip(t, ray.near, ray.far) * ray.d_direction
    # |s_x|^2 + |s_y|^2 is the square of five standard deviations of a square pixel's footprint.
    reach, half = jnp.sum(jax.lax.stop_gradient(sides) ** 2), (box.upper - box.lower) / 2
    # Variances add: h becomes sqrt(h^2 + r^2), where that is more than a tenth of it.
    more = jnp.where(reach > (half / 2) ** 2, jnp.sqrt(half**2 + reach) - half, 0)
    return Box(box.lower - more, box.upper + more)


def _is_last(far: Scalar, span: Span) -> Bool[Array, ""]:
    """Returns true if a part that ends at `far` reaches the end of its ray."""
    return far >= _AT_END * span.far
