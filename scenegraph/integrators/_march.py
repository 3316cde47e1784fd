"""Even steps along a ray: in `t`, or in contracted space where the scene has such a volume."""

import jax.numpy as jnp

from .._typing import Array, Float, Int, ScalarLike
from ..encodings import contract_length, expand_length
from ..numerics import AbstractModule
from ..rays import Span
from ..scene import Pace


class March(AbstractModule):
    """Even steps along a ray: where the first begins and how long they are.

    They are even in `t`, or, with a `pace`, in contracted length.
    """

    start: Float[Array, "*rays"]
    step: Float[Array, "*rays"]
    pace: Pace | None = None

    def part(self, number: Int[Array, ""]) -> Span:
        """Returns the ends of one step."""
        return Span(self.edge(number), self.edge(number + 1))

    def edge(self, number: Int[Array, ""] | Float[Array, ""]) -> Float[Array, ""]:
        """Returns where one step begins."""
        place = self.start + number * self.step
        if self.pace is None:
            return place
        # Steps are even in s = contract((t - middle) rate), which has this inverse.
        return self.pace.middle + expand_length(place) / self.pace.rate


def even_steps(
    span: Span, pace: Pace | None, count: int, shortest: ScalarLike, shift: Array | None
) -> March:
    """Divides a span into steps, moved back by a share of one if there is a `shift`.

    Without a pace, no step is shorter than `shortest`, in `t`.
    """
    # A step that is moved back needs one more to reach the end.
    count -= shift is not None
    if pace is None:
        # max((far - near) / count, shortest)
        start = span.near
        step = jnp.maximum(span.far - span.near, 0) / count
        step = jnp.maximum(step, shortest)
    else:
        start, end = (contract_length((t - pace.middle) * pace.rate) for t in (span.near, span.far))
        step = jnp.maximum(end - start, 0) / count
    return March(start if shift is None else start - shift * step, step, pace)
