"""Optimisers that treat leaves differently, by their paths."""

from collections.abc import Hashable, Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from optax import projections

from .._typing import PyTree
from ..numerics import as_float_leaf
from ..scene import check_matches, label_leaves, matches


def by_path(rules: Mapping[str, optax.GradientTransformation]) -> optax.GradientTransformation:
    """Combines optimisers, or learning rates, one for each part of a scene.

    **Arguments:**

    - `rules`: paths (see `select`) with their optimisers; the first that matches a leaf counts.

    **Returns:**

    An optax transformation.

    **Errors:**

    When it is first used: `ValueError` for a path that matches nothing that is optimised, or a leaf
    that no path matches.

    Example: the lamp moves ten times as fast as all else.

    ```python
    optimizer = sg.optimizers.by_path({"lamp.*": optax.adam(1e-1), "**": optax.adam(1e-2)})
    ```
    """

    def labels(params: PyTree) -> PyTree:
        _check_patterns(rules, params)
        return label_leaves(params, lambda path: _first_match(rules, path))

    transforms: dict[Hashable, optax.GradientTransformation] = {**rules}
    return optax.partition(transforms, labels)


def within(bounds: Mapping[str, tuple[Any, Any]]) -> optax.GradientTransformation:
    """Keeps leaves between bounds: the last link of an optimiser, after the learning rate.

    **Arguments:**

    - `bounds`: paths (see `select`) with a lowest and a highest value, each a number, an array of
      the leaf's shape, or `None` for no bound.

    **Returns:**

    An optax transformation that shortens steps which would leave the bounds.

    **Errors:**

    When it is first used: `ValueError` for a path that matches nothing that is optimised.

    Example: a radius stays positive, and a colour between 0 and 1.

    ```python
    optimizer = optax.chain(
        optax.adam(1e-2),
        sg.optimizers.within({"**.radius": (1e-3, None), "**.color*": (0.0, 1.0)}),
    )
    ```
    """

    def init(params: PyTree) -> optax.EmptyState:
        _check_patterns(bounds, params)
        return optax.EmptyState()

    def update(updates: Any, state: optax.OptState, params: Any = None) -> tuple[Any, Any]:
        def limits(path: str) -> _Limits:
            low, high = next((x for name, x in bounds.items() if matches(name, path)), (None, None))
            return _Limits((-jnp.inf if low is None else low, jnp.inf if high is None else high))

        def shorten(limit: _Limits, step: Any, leaf: Any) -> Any:
            low, high = (as_float_leaf(x).astype(leaf.dtype) for x in limit.ends)
            # clip(x + d, low, high) - x
            return projections.projection_box(leaf + step, low, high) - leaf

        every = label_leaves(params, limits)
        is_limits = lambda x: isinstance(x, _Limits)
        return jax.tree.map(shorten, every, updates, params, is_leaf=is_limits), state

    return optax.GradientTransformation(init, update)


class _Limits(eqx.Module):
    """Bounds of a leaf, as a leaf of a tree of bounds."""

    ends: tuple[Any, Any]


def _first_match(rules: Mapping[str, Any], path: str) -> str:
    for pattern in rules:
        if matches(pattern, path):
            return pattern
    raise ValueError(f"no rule matches the leaf {path!r}; add one for `**`.")


def _check_patterns(rules: Mapping[str, Any], params: PyTree) -> None:
    check_matches(params, [pattern for pattern in rules if pattern != "**"])
