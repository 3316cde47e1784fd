import equinox as eqx
import jax.numpy as jnp

from .._typing import Vector
from ..numerics import AbstractModule, as_float_leaf, safe_divide
from ..rays import Ray, Span


class Box(AbstractModule):
    """An axis-aligned box.

    **Arguments:**

    - `lower`, `upper`: two opposite corners, `lower` below `upper` in every coordinate.
    """

    lower: Vector = eqx.field(converter=as_float_leaf, default=(-1.5, -1.5, -1.5))
    upper: Vector = eqx.field(converter=as_float_leaf, default=(1.5, 1.5, 1.5))

    def span(self, ray: Ray) -> Span:
        """The part of a ray inside the box, cut with the ray's own `near` and `far`.

        **Arguments:**

        - `ray`: one ray, in the box's frame.

        **Returns:**

        The span; one that is empty and lies at the ray's `near` if the ray misses.
        """
        parallel = ray.direction == 0
        first = safe_divide(self.lower - ray.origin, ray.direction)
        second = safe_divide(self.upper - ray.origin, ray.direction)
        inside = (ray.origin > self.lower) & (ray.origin < self.upper)
        enters = jnp.where(
            parallel, jnp.where(inside, -jnp.inf, jnp.inf), jnp.minimum(first, second)
        )
        leaves = jnp.where(
            parallel, jnp.where(inside, jnp.inf, -jnp.inf), jnp.maximum(first, second)
        )
        near = jnp.maximum(jnp.max(enters), ray.near)
        far = jnp.minimum(jnp.min(leaves), ray.far)
        hit = far > near
        return Span(jnp.where(hit, near, ray.near), jnp.where(hit, far, ray.near))
