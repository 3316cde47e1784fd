"""Derivatives at the knots of functions, beside one-sided differences."""

from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from scenegraph.numerics import is_frozen


STEP, DIRECTIONS = 1e-6, 4


def as_double(tree: Any) -> Any:
    """The tree with all numbers in double precision."""
    wide = lambda x: jnp.asarray(x, jnp.float64) if eqx.is_inexact_array(x) else x
    return jax.tree.map(wide, tree)


def float_leaves(node: Any) -> Any:
    """A filter of float leaves that are not frozen."""
    found = lambda x: not is_frozen(x) and eqx.is_inexact_array(x)
    return jax.tree.map(found, node, is_leaf=is_frozen)


def check_knots(
    function: Callable, nodes: Sequence[Any], second: bool = True, slack: float = 1e-3
) -> None:
    """A scalar function's derivatives by all float leaves of nodes of one structure.

    By each leaf's every number, and along some directions, they lie between the differences to
    both sides; and second derivatives are those of differences of the first ones, at places near
    the knots, and at the knots themselves where the first ones have no jump.
    """
    free, held = eqx.partition(as_double(nodes[0]), float_leaves(nodes[0]))
    back = ravel_pytree(free)[1]
    vectors = [ravel_pytree(eqx.filter(as_double(x), float_leaves(x)))[0] for x in nodes]
    number = lambda vector: function(eqx.combine(back(vector), held))
    turn = lambda vector, way: jax.jvp(jax.grad(number), (vector,), (way,))[1]
    values, slopes = jax.jit(jax.vmap(number)), jax.jit(jax.vmap(jax.grad(number)))
    bends, draw = jax.jit(jax.vmap(turn)), np.random.default_rng(0)
    count = len(vectors[0])
    ways = np.concatenate([np.eye(count)[:32], draw.normal(size=(DIRECTIONS, count))])
    for at in map(np.asarray, vectors):
        _check_first(values, slopes, at, ways, slack)
        near = at + 1e-3 * draw.normal(size=count)
        for start in (at, near) if second else ():
            _check_second(slopes, bends, start, ways[-1])


def _check_first(values: Any, slopes: Any, at: np.ndarray, ways: np.ndarray, slack: float) -> None:
    found = np.asarray(values(np.concatenate([[at], at + STEP * ways, at - STEP * ways])))
    ahead = (found[1 : len(ways) + 1] - found[0]) / STEP
    behind = (found[0] - found[len(ways) + 1 :]) / STEP
    slope = np.asarray(slopes(at[None]))[0]
    assert np.all(np.isfinite(slope)), (at, slope)
    low, high, seen = np.minimum(ahead, behind), np.maximum(ahead, behind), ways @ slope
    room = slack * (1 + np.abs(low) + np.abs(high))
    outside = np.flatnonzero((seen < low - room) | (seen > high + room))
    found = [f"{i}: {behind[i]:.5g}, {seen[i]:.5g}, {ahead[i]:.5g}" for i in outside[:6]]
    assert not found, f"behind, derivative, ahead at {at.round(3).tolist()[:12]}: {found}"


def _check_second(slopes: Any, bends: Any, at: np.ndarray, way: np.ndarray) -> None:
    steps = STEP * np.array([0, 1, -1, 2, -2])[:, None]
    found = np.asarray(slopes(at + steps * way))
    ahead, behind = (found[1] - found[0]) / STEP, (found[0] - found[2]) / STEP
    # Where the first derivative jumps, its differences halve over twice the step.
    near, far = (ahead + behind) / 2, (found[3] - found[4]) / (4 * STEP)
    smooth = np.abs(near - far) < 1e-3 * (1 + np.abs(near))
    low, high = np.minimum(ahead, behind)[smooth], np.maximum(ahead, behind)[smooth]
    bend = np.asarray(bends(at[None], way[None]))[0][smooth]
    room = 2e-3 * (1 + np.abs(near[smooth]).max(initial=0))
    outside = np.flatnonzero((bend < low - room) | (bend > high + room))
    found = [f"{low[i]:.5g}, {bend[i]:.5g}, {high[i]:.5g}" for i in outside[:6]]
    assert not found, f"second derivatives outside of differences at {at.round(3)[:12]}: {found}"
