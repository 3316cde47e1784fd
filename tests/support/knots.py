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
    number = jax.value_and_grad(lambda vector: function(eqx.combine(back(vector), held)))
    draw, count = np.random.default_rng(0), len(vectors[0])
    ways = np.concatenate([np.eye(count)[:32], draw.normal(size=(DIRECTIONS, count))])

    @jax.jit
    @jax.vmap
    def results(vector):
        """A value, its gradient, and how this changes along the last direction."""
        if not second:
            return *number(vector), vector
        value_and_slope, (_, bend) = jax.jvp(number, (vector,), (ways[-1],))
        return *value_and_slope, bend

    # One program for all: compiling is most of the time.
    moves = STEP * np.concatenate([[0 * ways[0]], ways, -ways])
    turns = STEP * np.array([0, 1, -1, 2, -2])[:, None] * ways[-1]
    for at in map(np.asarray, vectors):
        near = at + 1e-3 * draw.normal(size=count)
        found = results(np.concatenate([at + moves, at + turns, near + turns]))
        values, slopes, bends = map(np.asarray, found)
        _check_first(values[: len(moves)], slopes[0], at, ways, slack)
        for i in (len(moves), len(moves) + len(turns)) if second else ():
            _check_second(slopes[i : i + len(turns)], bends[i], at)


def _check_first(
    values: np.ndarray, slope: np.ndarray, at: np.ndarray, ways: np.ndarray, slack: float
) -> None:
    """Checks a derivative at a place: values there, ahead and behind along each direction."""
    ahead, behind = np.split(values[1:], 2)
    ahead, behind = (ahead - values[0]) / STEP, (values[0] - behind) / STEP
    assert np.all(np.isfinite(slope)), (at, slope)
    low, high, seen = np.minimum(ahead, behind), np.maximum(ahead, behind), ways @ slope
    room = slack * (1 + np.abs(low) + np.abs(high))
    outside = np.flatnonzero((seen < low - room) | (seen > high + room))
    found = [f"{i}: {behind[i]:.5g}, {seen[i]:.5g}, {ahead[i]:.5g}" for i in outside[:6]]
    assert not found, f"behind, derivative, ahead at {at.round(3).tolist()[:12]}: {found}"


def _check_second(slopes: np.ndarray, bend: np.ndarray, at: np.ndarray) -> None:
    """Checks second derivatives: gradients there and one and two steps to both sides."""
    ahead, behind = (slopes[1] - slopes[0]) / STEP, (slopes[0] - slopes[2]) / STEP
    # Where the first derivative jumps, its differences halve over twice the step.
    near, far = (ahead + behind) / 2, (slopes[3] - slopes[4]) / (4 * STEP)
    smooth = np.abs(near - far) < 1e-3 * (1 + np.abs(near))
    low, high = np.minimum(ahead, behind)[smooth], np.maximum(ahead, behind)[smooth]
    bend, room = bend[smooth], 2e-3 * (1 + np.abs(near[smooth]).max(initial=0))
    outside = np.flatnonzero((bend < low - room) | (bend > high + room))
    found = [f"{low[i]:.5g}, {bend[i]:.5g}, {high[i]:.5g}" for i in outside[:6]]
    assert not found, f"second derivatives outside of differences at {at.round(3)[:12]}: {found}"
