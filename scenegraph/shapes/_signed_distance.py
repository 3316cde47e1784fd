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

        The shape; between the points the function is interpolated linearly.
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
        (middle, least, bend), slopes = by_pixel(lambda *line: self._nearby(closest, *line), ray)
        outline = Crossing(middle, slopes[0])
        steep = choose(met, self._where_zero(ray, hit), outline)
        grazing = _on_parabola(outline, least, slopes[1], bend)
        near_outline = (-least < jnp.sum(jnp.abs(slopes[1]))) & (bend > 0)
        chord = safe_sqrt(-2 * least * safe_divide(jnp.ones_like(bend), bend))
        agrees = jnp.abs(closest - chord - hit) < 0.3 * (middle - grazing.t)
        crossing = choose(near_outline & (agrees | ~met), grazing, steep)
        covered = jnp.where(seen, half_plane_coverage(-least, -slopes[1]), 0)
        return crossing, covered * within_reach(ray, crossing)

    def _nearby(self, t: Scalar, origin: Vector, direction: Vector) -> tuple[Scalar, ...]:
        """Where the function is least along a line, how small it is, and how it bends there."""

        def rise(t: Scalar) -> Scalar:
            return jax.grad(lambda t: self.distance(origin + t * direction))(t)

        bend = _hold(jax.grad(rise)(t))
        step = jnp.where(bend > 0, safe_divide(rise(t), bend), 0)
        # Where the function is least, its value does not depend on where exactly that is.
        least = self.distance(origin + t * direction)
        moving = t - (step - _hold(step))
        return moving, least, jax.grad(rise)(moving)

    def _where_zero(self, ray: Ray, t: Scalar) -> Crossing:
        """The hit, moving with the surface: a Newton step of which the steepness is held."""

        def look(origin: Vector, direction: Vector) -> Scalar:
            value, steepness = jax.jvp(self.distance, (origin + t * direction,), (direction,))
            return t - safe_divide(value, _hold(steepness))

        return Crossing(*by_pixel(look, ray))


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
