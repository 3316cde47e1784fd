from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp

from .._typing import Array, ArrayLike, Float, PyTree, Scalar, Vector, VectorLike
from .._words import describe
from ..numerics import (
    dot,
    filtered_sqrt,
    half_plane_coverage,
    hold_constant,
    matmul,
    safe_divide,
    safe_norm,
    safe_normalise,
    safe_sqrt,
)
from ..rays import Ray, Span
from ..transforms import Ball
from ._base import AbstractSmoothShape, choose, Crossing, within_reach
from ._bounds import AbstractBounded
from ._box import Box
from ._distance_function import trace_distance
from ._grid import SampledDistance
from ._sphere_trace import search


# A part of the box's diagonal: the distance that a ray must have had from the surface before it can
# hit it, so that a shadow ray does not hit the point at which it starts.
_CLEARANCE = 5e-3
# A part of a step, by which a root may be off.
_ROUNDING = 0.05


def _as_module(distance: Any) -> Any:
    """Returns a Module as it is, and any other function as a part of the scene's structure."""
    return distance if isinstance(distance, eqx.Module) else jax.tree_util.Partial(distance)


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

    distance: Callable = eqx.field(converter=_as_module)
    bounds: Box = eqx.field(default_factory=Box)
    steps: int = eqx.field(static=True, default=64)

    is_convex: ClassVar[bool] = False
    has_uv: ClassVar[bool] = False

    def __check_init__(self):
        if self.steps < 1:
            raise ValueError(f"`SignedDistance.steps` must be at least 1; got {self.steps}.")
        found = eqx.filter_eval_shape(self.distance, jnp.zeros(3))
        if not isinstance(found, float) and getattr(found, "shape", None) != ():
            raise TypeError(
                f"`SignedDistance.distance` must return one number for a place, the distance to "
                f"the surface; got {describe(found)}."
            )

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
        function, constants = trace_distance(self.distance, ray.origin)
        ends = _between_faces(ray, self.bounds.span(ray))
        bounds, searched, span = hold_constant((self.bounds, ray, ends))
        size = safe_norm(bounds.upper - bounds.lower)
        found = search(
            function, hold_constant(constants), searched, span, _CLEARANCE * size, self.steps
        )
        distance = partial(function, constants)
        line = constants, ray.origin, ray.direction
        reach = _ROUNDING * (span.far - span.near) / self.steps
        along = lambda line, t: function(line[0], line[1] + t * line[2])
        derivative = lambda line, t: jax.jvp(partial(along, line), (t,), (jnp.ones_like(t),))[1]
        # The hit is a root of f(t), the nearest point one of f'(t).
        first = _root(along, found.hit, line, reach)
        middle = _root(derivative, found.nearest, line, reach)
        # Least where the search ends, it moves with the bounds.
        middle = jnp.where(found.nearest >= span.far, ends.far, middle)
        middle = jnp.where(found.nearest <= span.near, ends.near, middle)
        # docs/surfaces.md, "Functions of space", derives both crossings' derivatives.
        steep = _steep(distance, ray, first)
        outline, least, gradient, bend = _outline(distance, ray, middle, reach)
        grazing = _on_parabola(outline, least, gradient, bend)
        # In the pixel, the least value m + s . p differs from m by at most (|s_x| + |s_y|) / 2;
        # here, by twice that.
        near_outline = (-least < jnp.sum(jnp.abs(gradient))) & (bend > 0)
        # The parabola is used only where its own root (not the mean) is that of the function.
        chord = safe_sqrt(-2 * least * safe_divide(jnp.ones_like(bend), bend))
        agrees = jnp.abs(middle - chord - first) < 0.3 * (middle - grazing.t)
        away = choose(near_outline, grazing, outline)
        crossing = choose(found.is_hit & ~(near_outline & agrees), steep, away)
        # The outline is where the least value along the ray is zero.
        covered = jnp.where(found.seen, half_plane_coverage(-least, -gradient), 0)
        return crossing, covered * within_reach(ray, crossing)

    def normal_at(self, point: Vector) -> Vector:
        return safe_normalise(jax.grad(self.distance)(point))

    def uv_at(self, point: Vector) -> Float[Array, "2"]:
        return jnp.zeros_like(point[:2])


# The part of a span that is left out at both ends, and roundings of `t` beside it.
_INSET, _ROUNDINGS = 1e-5, 8


def _between_faces(ray: Ray, span: Span) -> Span:
    """Returns a span without those ends that lie on faces, where distances may have kinks."""
    rounding = _ROUNDINGS * jnp.finfo(span.far.dtype).eps
    inset = lambda t: _INSET * (span.far - span.near) + rounding * jnp.abs(t)
    near = jnp.where(span.near > ray.near, span.near + inset(span.near), span.near)
    return Span(near, jnp.where(span.far < ray.far, span.far - inset(span.far), span.far))


@partial(jax.custom_jvp, nondiff_argnums=(0,))
def _root(
    function: Callable[[PyTree, Scalar], Scalar], t: Scalar, line: PyTree, reach: Scalar
) -> Scalar:
    """Returns a root that was found before, with the derivatives that it has as a root."""
    del function, line, reach
    return t


@_root.defjvp
def _root_jvp(function: Callable, primals: tuple, tangents: tuple) -> tuple[Scalar, Scalar]:
    # f(t(x), x) = 0, and so dt/dx = -f_x / f_t. Where t is no root, as at a kink, it is constant.
    t, line, reach = primals
    t = _root(function, t, line, reach)
    value, rate = jax.jvp(partial(function, line), (t,), (jnp.ones_like(t),))
    _, change = jax.jvp(lambda line: function(line, t), (line,), (tangents[1],))
    is_root = jnp.abs(value) < reach * jnp.abs(rate)
    return t, jnp.where(is_root, -safe_divide(change, rate), 0)


def _steep(distance: Callable[[Vector], Scalar], ray: Ray, t: Scalar) -> Crossing:
    """Returns the crossing at a root: `dt = -(g . dp) / (g . d)` with the function's gradient."""
    gradient = jax.grad(distance)(ray.at(t))
    change = matmul(ray.d_origin + t * ray.d_direction, gradient)
    return Crossing(t, -change * safe_divide(jnp.ones_like(t), dot(gradient, ray.direction)))


def _outline(
    distance: Callable[[Vector], Scalar], ray: Ray, t: Scalar, reach: Scalar
) -> tuple[Crossing, Scalar, Float[Array, "2"], Scalar]:
    """Returns where the function is least along the ray, its value there with the derivatives by
    the pixel, and its second derivative along the ray."""
    # g . d = 0 at the least value, for every pixel: dt = -(dp . H d + g . dd) / (d . H d).
    whole = jax.value_and_grad(distance)
    (least, gradient), (rate, turn) = jax.jvp(whole, (ray.at(t),), (ray.direction,))
    d_point, bend = ray.d_origin + t * ray.d_direction, dot(turn, ray.direction)
    change = matmul(d_point, turn) + matmul(ray.d_direction, gradient)
    is_least = jnp.abs(rate) < reach * bend
    d_t = jnp.where(is_least, -change * safe_divide(jnp.ones_like(bend), bend), 0)
    return Crossing(t, d_t), least, matmul(d_point, gradient), bend


def _on_parabola(
    middle: Crossing, least: Scalar, gradient: Float[Array, "2"], bend: Scalar
) -> Crossing:
    """Returns the crossing near the outline, where the function along the ray is a parabola."""
    # f(t) = least + bend / 2 (t - middle)^2 is zero at t = middle - sqrt(-2 least / bend), and the
    # root is replaced by its mean over the pixel (docs/surfaces.md, "Coverage").
    scale = 2 * safe_divide(jnp.ones_like(bend), bend)
    half, d_half = filtered_sqrt(-least * scale, -gradient * scale)
    return Crossing(middle.t - half, middle.gradient - d_half)
