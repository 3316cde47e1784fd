import functools
from typing import Any

import jax
import jax.numpy as jnp

from .._typing import Array, Bool, PyTree, RandomKey, Scalar
from ..numerics import is_frozen
from ..rays import Medium, Ray, Section, Span
from ._node import AbstractNode, check_node
from ._transformed import Transformed


_RESERVED = ("background", "integrator", "transform")
# What every medium has at least when colours are mixed: where there is next to nothing, the mixture
# is even, and its derivative stays far from overflow.
_TRACE = 1e-12


class Group(AbstractNode):
    """Named children that share a frame. Overlapping media add their densities.

    **Arguments:**

    - `children`: nodes, cameras and further groups, as keyword arguments. A name has no dot, and
      is not `background`, `integrator` or `transform`, which paths use for other things.
    """

    children: dict[str, Any]

    def __init__(self, **children: Any):
        for name, child in children.items():
            _check_name(name)
            check_node(child, f"the child {name!r} of a Group")
        self.children = children

    def span(self, ray: Ray) -> Span:
        spans = [child.span(ray) for child in self._media().values()]
        return functools.reduce(_hull, spans, Span(ray.near, ray.near))

    def prepare(self, ray: Ray) -> PyTree:
        return {name: child.prepare(ray) for name, child in self._media().items()}

    def propose(self, section: Section, prepared: PyTree) -> Scalar:
        densities = [c.propose(section, prepared[name]) for name, c in self._media().items()]
        return sum(densities, start=jnp.zeros_like(section.t0))

    def occupied(self, ray: Ray, part: Span) -> Bool[Array, ""]:
        answers = [child.occupied(ray, part) for child in self._media().values()]
        return jnp.any(jnp.asarray(answers, bool))

    def medium(self, section: Section, prepared: PyTree, *, key: RandomKey | None = None) -> Medium:
        media = [
            child.medium(section, prepared[name], key=_fold(key, index))
            for index, (name, child) in enumerate(self._media().items())
        ]
        if len(media) == 1:
            return media[0]
        return sum_media(media, like=section.t0)

    def _media(self) -> dict[str, AbstractNode]:
        return {name: c for name, c in sorted(self.children.items()) if fills_space(c)}


def fills_space(node: Any) -> bool:
    """Whether a node has any medium in it.

    **Arguments:**

    - `node`: a child of a group.

    **Returns:**

    False for cameras, for empty groups, and for what is only made of these.
    """
    if is_frozen(node):
        return fills_space(node.value)
    if isinstance(node, Transformed):
        return fills_space(node.child)
    if isinstance(node, Group):
        return any(fills_space(child) for child in node.children.values())
    return isinstance(node, AbstractNode)


def sum_media(media: list[Medium], like: jax.Array) -> Medium:
    """Several media in one place: densities add, colours mix in proportion to density.

    **Arguments:**

    - `media`: any number of them, also none.
    - `like`: gives the number type.

    **Returns:**

    One medium.
    """
    if not media:
        return Medium(jnp.zeros_like(like), jnp.zeros_like(like, shape=3))
    densities = jnp.stack([medium.density for medium in media])
    colors = jnp.stack([medium.rgb for medium in media])
    amounts = densities + _TRACE
    shares = amounts / jnp.sum(amounts)
    return Medium(jnp.sum(densities), jnp.sum(shares[:, None] * colors, axis=0))


def _hull(a: Span, b: Span) -> Span:
    """The smallest span that holds both, where either may be empty."""
    near = jnp.where(b.far > b.near, jnp.minimum(a.near, b.near), a.near)
    far = jnp.where(b.far > b.near, jnp.maximum(a.far, b.far), a.far)
    empty = a.far <= a.near
    return Span(jnp.where(empty, b.near, near), jnp.where(empty, b.far, far))


def _fold(key: RandomKey | None, index: int) -> RandomKey | None:
    return None if key is None else jax.random.fold_in(key, index)


def _check_name(name: str) -> None:
    if not name or "." in name or "*" in name or name in _RESERVED:
        raise ValueError(
            f"a child of a Group needs a name without dots and stars that is none of "
            f"{', '.join(_RESERVED)}; got {name!r}."
        )
