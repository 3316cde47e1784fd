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
from ..rays import pixel_jvp, Ray, Span
from ..transforms import Ball
from ._base import AbstractSmoothShape, choose, Crossing, within_reach
from ._bounds import AbstractBounded
from ._box import Box
from ._grid import SampledDistance


# A part of the box's diagonal: the distance that a ray must have had from the surface before it can
# hit it, so that a shadow ray does not hit the point at which it starts.
_CLEARANCE = 5e-3
# A ray approaches the surface where its distance falls below this part of the largest one before.
_FALL = 0.9
_REFINEMENTS = 16
_GOLDEN = 0.6180339887498949


class SignedDistance(AbstractSmoothShape, AbstractBounded):
    """The surface where a function of space is zero: negative inside, positive outside.

    Rays are traced by steps as long as the function's value, a fixed number of them. Gradients do
    not go through the steps: they follow from the function being zero at the hit, and least where
    a ray comes nearest. It has no `uv`. An outline of the shape in front of itself is not filtered.

    **Arguments:**

    - `distance`: a function of a point (`3`) that returns a scalar: a Python function, or a Module
      whose leaves can be optimised. If it is steeper than a distance, rays can pass through.
    - `bounds`: the box outside of which there is no surface.
    - `steps`: number of steps of a ray; static.

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
        """Makes a surface from samples on a grid, which are leaves.

        **Arguments:**

        - `values`: the function at the points of a grid, of shape `x y z`, the first and the last
          on the box's faces.
        - `lower`, `upper`: corners of the box.
        - `steps`: number of steps of a ray. Keyword only argument.

        **Returns:**

        The shape; between the points the function is smooth.
        """
        bounds = Box(lower, upper)
        return SignedDistance(SampledDistance(values, bounds.lower, bounds.upper), bounds, steps)

    def bounding_ball(self) -> Ball:
        return self.bounds.bounding_ball()

    def cross(self, ray: Ray) -> tuple[Crossing, Scalar]:
        span = self.bounds.span(ray)
        hit, found, nearest, seen = _constant(_search(*_constant((self, ray, span))))
        spacing = _constant(span.far - span.near) / self.steps

        def intersect_line(origin: Vector, direction: Vector) -> tuple[Scalar, ...]:
            along = lambda t: self.distance(origin + t * direction)
            middle = _minimum(along, nearest, spacing)
            (least, _), (_, bend) = _with_derivative(_with_derivative(along))(middle)
            return _root(along, hit, spacing), middle, least, bend

        (first, middle, least, bend), derivatives = pixel_jvp(intersect_line, ray)
        steep, outline = Crossing(first, derivatives[0]), Crossing(middle, derivatives[1])
        grazing = _on_parabola(outline, least, derivatives[2], bend)
        near_outline = (-least < jnp.sum(jnp.abs(derivatives[2]))) & (bend > 0)
        # The parabola is used only where its own root (not the mean) is that of the function.
        chord = safe_sqrt(-2 * least * safe_divide(jnp.ones_like(bend), bend))
        agrees = jnp.abs(middle - chord - first) < 0.3 * (middle - grazing.t)
        away = choose(near_outline, grazing, outline)
        crossing = choose(found & ~(near_outline & agrees), steep, away)
        # The outline is where the least value along the ray is zero.
        covered = jnp.where(seen, half_plane_coverage(-least, -derivatives[2]), 0)
        return crossing, covered * within_reach(ray, crossing)

    def normal_at(self, point: Vector) -> Vector:
        return safe_normalise(jax.grad(self.distance)(point))

    def uv_at(self, point: Vector) -> Float[Array, "2"]:
        return jnp.zeros_like(point[:2])


def _with_derivative(
    along: Callable[[Scalar], PyTree],
) -> Callable[[Scalar], tuple[PyTree, PyTree]]:
    return lambda t: jax.jvp(along, (t,), (jnp.ones_like(t),))


def _root(along: Callable[[Scalar], Scalar], t: Scalar, reach: Scalar) -> Scalar:
    """Finds a function's root from a constant nearby, by Newton's method: `t - f(t) / f'(t)`.

    Each step doubles the order to which the derivatives are those of the root: two make the first
    and the second ones right.
    """
    for _ in range(2):
        step = safe_divide(*_with_derivative(along)(t))
        t = t - jnp.where(jnp.abs(step) < reach, step, 0)
    return t


def _minimum(along: Callable[[Scalar], Scalar], t: Scalar, reach: Scalar) -> Scalar:
    """Finds a function's minimum from a constant nearby; the constant itself at a kink."""
    rate = lambda t: _with_derivative(along)(t)[1]
    bent = _constant(_with_derivative(rate)(t)[1]) > 0
    return jnp.where(bent, _root(rate, t, reach), t)


def _on_parabola(
    middle: Crossing, least: Scalar, gradient: Float[Array, "2"], bend: Scalar
) -> Crossing:
    """Returns the crossing near the outline, where the function along the ray is a parabola."""
    # f(t) = least + bend / 2 (t - middle)^2 is zero at t = middle - sqrt(-2 least / bend), and the
    # root is replaced by its mean over the pixel (docs/surfaces.md, "Coverage").
    scale = 2 * safe_divide(jnp.ones_like(bend), bend)
    half, d_half = filtered_sqrt(-least * scale, -gradient * scale)
    return Crossing(middle.t - half, middle.gradient - d_half)


def _search(shape: SignedDistance, ray: Ray, span: Span) -> tuple[Array, Array, Array, Array]:
    """Returns the hit and whether there is one, the deepest (else the nearest) point of the ray,
    and whether the ray approaches the surface at all."""
    clearance = _CLEARANCE * safe_norm(shape.bounds.upper - shape.bounds.lower)

    def value_at(t: Scalar) -> Scalar:
        return shape.distance(ray.at(t))

    hit = _sphere_trace(value_at, span, safe_norm(ray.direction), clearance, shape.steps)
    at_hit = value_at(hit)
    found = jnp.abs(at_hit) < 0.1 * clearance
    samples = span.near + (span.far - span.near) * (jnp.arange(shape.steps) + 0.5) / shape.steps
    values = jax.vmap(value_at)(samples)
    # A ray that starts on the surface is near to it, or even inside, without approaching it.
    peaks = jax.lax.cummax(jnp.where(values > clearance, values, 0))
    approaches = ((peaks > 0) & (values < _FALL * peaks)) | (found & (samples >= hit))
    values = jnp.where(approaches, values, jnp.inf)
    start = samples[jnp.argmin(values)]
    nearest = _golden_section(value_at, start, (span.far - span.near) / shape.steps)
    nearest = jnp.where(found & (at_hit < value_at(nearest)), hit, nearest)
    seen = (jnp.any(approaches) | found) & (span.far > span.near)
    return hit, found, nearest, seen


def _sphere_trace(
    value_at: Callable[[Scalar], Scalar], span: Span, speed: Scalar, clearance: Scalar, steps: int
) -> Scalar:
    """Steps by the function's value; until the ray has been clear of the surface, by `clearance`
    at least."""

    def advance(carry: tuple, _: None) -> tuple[tuple, None]:
        t, clear = carry
        value = value_at(t)
        clear = clear | (value > clearance)
        step = jnp.where(clear, value, jnp.maximum(value, clearance))
        return (jnp.clip(t + step / speed, span.near, span.far), clear), None

    start = span.near, jnp.zeros((), bool)
    return jax.lax.scan(advance, start, length=steps)[0][0]


def _golden_section(value_at: Callable[[Scalar], Scalar], t: Scalar, spacing: Scalar) -> Scalar:
    """Finds the minimum between `t - spacing` and `t + spacing` by golden-section search."""

    def narrow(ends: tuple[Scalar, Scalar], _: None) -> tuple[tuple[Scalar, Scalar], None]:
        low, high = ends
        first, second = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
        left = value_at(first) < value_at(second)
        return (jnp.where(left, low, first), jnp.where(left, second, high)), None

    ends, _ = jax.lax.scan(narrow, (t - spacing, t + spacing), length=_REFINEMENTS)
    return (ends[0] + ends[1]) / 2


def _constant(tree: PyTree) -> PyTree:
    """Stops the gradients of a tree."""
    return jax.tree.map(lambda x: jax.lax.stop_gradient(x) if eqx.is_array(x) else x, tree)
