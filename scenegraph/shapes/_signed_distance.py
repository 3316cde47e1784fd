from collections.abc import Callable
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp

from .._typing import Array, ArrayLike, Float, PyTree, Scalar, Vector, VectorLike
from ..numerics import (
    filtered_sqrt,
    half_plane_coverage,
    safe_divide,
    safe_norm,
    safe_normalise,
    safe_sqrt,
)
from ..rays import by_pixel, Hit, Ray, Span
from ._base import AbstractShape, choose, Crossing, join_pieces, smooth_piece, within_reach
from ._box import Box
from ._grid import SampledDistance


# Of the box's diagonal: how far a ray must have been from the surface before it can meet it, so
# that a shadow ray does not meet the place where it begins.
_CLEARANCE = 5e-3
# A ray comes near the surface where its distance falls below this part of what it was.
_FALL = 0.9
_REFINEMENTS = 16
_GOLDEN = 0.6180339887498949


class SignedDistance(AbstractShape):
    """The surface where a function of space is zero: negative inside, positive outside.

    Rays are traced by steps as long as the function's value, a fixed number of them. Gradients do
    not go through the steps: they follow from the function being zero at the hit, and least where
    a ray comes closest. It has no `uv`. An outline of the shape in front of itself is not filtered.

    **Arguments:**

    - `distance`: from a point to a scalar: a function or a Module, whose leaves can be optimised;
      nowhere steeper than a distance, or rays can pass through.
    - `bounds`: where the surface is looked for.
    - `steps`: how many a ray takes; static.

    **Source:** Hart 1996, "Sphere tracing"; for the derivatives Niemeyer et al. 2020,
    "Differentiable Volumetric Rendering", equation 9.

    Example: a ball with a dent.

    ```python
    def dented(p):
        dent = 0.5 - jnp.linalg.norm(p - jnp.array([1.0, 0.0, 0.0]))
        return jnp.maximum(jnp.linalg.norm(p) - 1, dent)


    dent = sg.Surface(sg.SignedDistance(dented), [0.8, 0.2, 0.1])
    ```
    """

    distance: Callable
    bounds: Box = eqx.field(default_factory=Box)
    steps: int = eqx.field(static=True, default=64)

    is_convex: ClassVar[bool] = False
    has_uv: ClassVar[bool] = False

    def __check_init__(self):
        if self.steps < 1:
            raise ValueError(f"`SignedDistance.steps` must be at least 1; got {self.steps}.")

    @staticmethod
    def from_grid(
        values: ArrayLike, lower: VectorLike, upper: VectorLike, *, steps: int = 64
    ) -> "SignedDistance":
        """A surface given by samples, which are leaves.

        **Arguments:**

        - `values`: the function at the points of a grid, of shape `x y z`, the first and the last
          on the box's faces.
        - `lower`, `upper`: corners of the box.
        - `steps`: as in `SignedDistance`. Keyword only argument.

        **Returns:**

        The shape; between the points the function is smooth.
        """
        bounds = Box(lower, upper)
        return SignedDistance(SampledDistance(values, bounds.lower, bounds.upper), bounds, steps)

    def coverage(self, ray: Ray) -> Scalar:
        return self._cross(ray)[1]

    def pieces(self, ray: Ray) -> Hit:
        crossing, covered = self._cross(ray)
        normal = lambda point: safe_normalise(jax.grad(self.distance)(point))
        nothing = lambda point: jnp.zeros_like(point[:2])
        return join_pieces(smooth_piece(ray, crossing, normal, nothing, covered))

    def _cross(self, ray: Ray) -> tuple[Crossing, Scalar]:
        span = self.bounds.span(ray)
        hit, met, closest, seen = _hold(_search(*_hold((self, ray, span))))
        spacing = _hold(span.far - span.near) / self.steps

        def nearby(origin: Vector, direction: Vector) -> tuple[Scalar, ...]:
            along = lambda t: self.distance(origin + t * direction)
            middle = _where_least(along, closest, spacing)
            (least, _), (_, bend) = _with_rate(_with_rate(along))(middle)
            return _zero(along, hit, spacing), middle, least, bend

        (first, middle, least, bend), slopes = by_pixel(nearby, ray)
        steep, outline = Crossing(first, slopes[0]), Crossing(middle, slopes[1])
        grazing = _on_parabola(outline, least, slopes[2], bend)
        near_outline = (-least < jnp.sum(jnp.abs(slopes[2]))) & (bend > 0)
        chord = safe_sqrt(-2 * least * safe_divide(jnp.ones_like(bend), bend))
        agrees = jnp.abs(middle - chord - first) < 0.3 * (middle - grazing.t)
        away = choose(near_outline, grazing, outline)
        crossing = choose(met & ~(near_outline & agrees), steep, away)
        covered = jnp.where(seen, half_plane_coverage(-least, -slopes[2]), 0)
        return crossing, covered * within_reach(ray, crossing)


def _with_rate(along: Callable[[Scalar], PyTree]) -> Callable[[Scalar], tuple[PyTree, PyTree]]:
    """What functions of one number are, and their derivatives."""
    return lambda t: jax.jvp(along, (t,), (jnp.ones_like(t),))


def _zero(along: Callable[[Scalar], Scalar], t: Scalar, reach: Scalar) -> Scalar:
    """Where a function is zero, from a place nearby that has no derivatives.

    Each of Newton's steps doubles the order to which the derivatives are those of the zero: two
    make the first and the second ones right.
    """
    for _ in range(2):
        step = safe_divide(*_with_rate(along)(t))
        t = t - jnp.where(jnp.abs(step) < reach, step, 0)
    return t


def _where_least(along: Callable[[Scalar], Scalar], t: Scalar, reach: Scalar) -> Scalar:
    """Where a function is least, unless it has a kink there."""
    rate = lambda t: _with_rate(along)(t)[1]
    bent = _hold(_with_rate(rate)(t)[1]) > 0
    return jnp.where(bent, _zero(rate, t, reach), t)


def _on_parabola(
    middle: Crossing, least: Scalar, slope: Float[Array, "2"], bend: Scalar
) -> Crossing:
    """The hit near the outline, where the function along the ray is a parabola."""
    scale = 2 * safe_divide(jnp.ones_like(bend), bend)
    half, half_slope = filtered_sqrt(-least * scale, -slope * scale)
    return Crossing(middle.t - half, middle.slope - half_slope)


def _search(shape: SignedDistance, ray: Ray, span: Span) -> tuple[Array, Array, Array, Array]:
    """Where a ray meets the surface and whether it does, where it is deepest inside (or closest),
    and whether it comes near at all."""
    clearance = _CLEARANCE * safe_norm(shape.bounds.upper - shape.bounds.lower)

    def value_at(t: Scalar) -> Scalar:
        return shape.distance(ray.at(t))

    speed = safe_norm(ray.direction)
    hit = _trace(value_at, span, speed, clearance, shape.steps)
    at_hit = value_at(hit)
    met = jnp.abs(at_hit) < 0.1 * clearance
    places = span.near + (span.far - span.near) * (jnp.arange(shape.steps) + 0.5) / shape.steps
    values = jax.vmap(value_at)(places)
    # A ray that just leaves the surface is near to it, or even inside, and does not come near it.
    peaks = jax.lax.cummax(jnp.where(values > clearance, values, 0))
    comes_near = ((peaks > 0) & (values < _FALL * peaks)) | (met & (places >= hit))
    values = jnp.where(comes_near, values, jnp.inf)
    closest = _refine(value_at, places[jnp.argmin(values)], (span.far - span.near) / shape.steps)
    closest = jnp.where(met & (at_hit < value_at(closest)), hit, closest)
    seen = (jnp.any(comes_near) | met) & (span.far > span.near)
    return hit, met, closest, seen


def _trace(
    value_at: Callable[[Scalar], Scalar], span: Span, speed: Scalar, clearance: Scalar, steps: int
) -> Scalar:
    """Goes on by the function's value; at first by as much as it takes to be clear of it."""

    def go_on(carry: tuple, _: None) -> tuple[tuple, None]:
        t, clear = carry
        value = value_at(t)
        clear = clear | (value > clearance)
        step = jnp.where(clear, value, jnp.maximum(value, clearance))
        return (jnp.clip(t + step / speed, span.near, span.far), clear), None

    start = span.near, jnp.zeros((), bool)
    return jax.lax.scan(go_on, start, length=steps)[0][0]


def _refine(value_at: Callable[[Scalar], Scalar], t: Scalar, spacing: Scalar) -> Scalar:
    """The least value between two places, by golden sections."""

    def narrow(ends: tuple[Scalar, Scalar], _: None) -> tuple[tuple[Scalar, Scalar], None]:
        low, high = ends
        first, second = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
        left = value_at(first) < value_at(second)
        return (jnp.where(left, low, first), jnp.where(left, second, high)), None

    ends, _ = jax.lax.scan(narrow, (t - spacing, t + spacing), length=_REFINEMENTS)
    return (ends[0] + ends[1]) / 2


def _hold(tree: PyTree) -> PyTree:
    return jax.tree.map(lambda x: jax.lax.stop_gradient(x) if eqx.is_array(x) else x, tree)
