"""Steps of many rays in lists of fixed length, taken in rounds from front to back."""

from collections.abc import Callable
from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp

from .._typing import Array, Bool, Float, Int, UInt32
from ..numerics import AbstractModule, count_bits, nth_bit, pack_bits, ragged_items
from ..rays import Medium


class Steps(AbstractModule):
    """Which steps of many rays are worth asking.

    **Arguments:**

    - `words`: from `pack_bits`, ray by ray.
    - `count`: how many there are on each ray.
    - `candidates`: how many steps a ray has.
    """

    words: UInt32[Array, "rays words"]
    count: Int[Array, " rays"]
    candidates: int = eqx.field(static=True)


class Listed(AbstractModule):
    """Samples in a list of fixed length.

    **Arguments:**

    - `ray`, `number`: which step of which ray a place of the list holds; the last step of the last
      ray where it holds none, so that a list in order stays in order.
    - `rank`: which of the steps of its ray that are worth asking it is.
    - `valid`: which places are used.
    """

    ray: Int[Array, " listed"]
    number: Int[Array, " listed"]
    rank: Int[Array, " listed"]
    valid: Bool[Array, " listed"]


class Samples(AbstractModule):
    """What there is at the samples of a list.

    **Arguments:**

    - `medium`: density and colour.
    - `optical_depth`: of each; zero at places that hold none.
    """

    medium: Medium
    optical_depth: Float[Array, " listed"]


class Answer(AbstractModule):
    """What there is along many rays.

    **Arguments:**

    - `listed`: the samples, ray after ray.
    - `samples`: what there is at them.
    - `asked`: how many samples each ray wants.
    - `missing`: how many of them found no room; then none of the ray's are in the list.
    """

    listed: Listed
    samples: Samples
    asked: Int[Array, " rays"]
    missing: Int[Array, " rays"]


def worth_asking(occupied: Bool[Array, "rays candidates"]) -> Steps:
    """The steps at which something may be.

    **Arguments:**

    - `occupied`: step by step.

    **Returns:**

    The steps.
    """
    words = jax.vmap(pack_bits)(occupied)
    return Steps(words, jnp.sum(count_bits(words), axis=1), occupied.shape[1])


def even_shares(wanted: Int[Array, " rays"], room: int, most: int) -> Int[Array, " rays"]:
    """Room for all rays alike, but for none more than it wants.

    **Arguments:**

    - `wanted`: by each ray.
    - `room`: for all together; static.
    - `most`: no ray wants more; static.

    **Returns:**

    How much each gets; together all of the room, if so much is wanted.
    """
    needed = jnp.sum(jnp.minimum(wanted[:, None], jnp.arange(1, most + 1)), axis=0)
    each = jnp.sum(needed <= room)  # What room suffices for grows with what each gets.
    shares = jnp.minimum(wanted, each)
    one_more = (wanted > each) & (jnp.cumsum(wanted > each) <= room - jnp.sum(shares))
    return shares + one_more


def whole_shares(wanted: Int[Array, " rays"], room: int) -> Int[Array, " rays"]:
    """Room for as many rays as get all that they want, in order.

    **Arguments:**

    - `wanted`, `room`: as in `even_shares`.

    **Returns:**

    How much each gets: all or nothing.
    """
    return jnp.where(jnp.cumsum(wanted) <= room, wanted, 0)


def take(steps: Steps, done: Int[Array, " rays"], shares: Int[Array, " rays"], room: int) -> Listed:
    """The next steps of every ray.

    **Arguments:**

    - `steps`: of all rays.
    - `done`: how many of them each ray has taken.
    - `shares`: how many it takes now.
    - `room`: for all together; static.

    **Returns:**

    The list, ray after ray.
    """
    ray, rank, valid = ragged_items(shares, room)
    rank = done[ray] + rank
    number = jax.vmap(nth_bit)(steps.words[ray], rank)
    return Listed(ray, jnp.where(valid, number, steps.candidates - 1), rank, valid)


def ask_in_rounds(
    ask: Callable[[Listed], Samples], steps: Steps, room: int, rounds: int, opaque: float
) -> Answer:
    """Asks what is along all rays, from front to back; rays that are opaque want no more.

    In all rounds but the last, rays share the room evenly; in the last, a ray gets all that it
    still wants, or is left out.

    **Arguments:**

    - `ask`: what there is at the samples of a list.
    - `steps`: of all rays.
    - `room`: for how many samples there is room in a round; static.
    - `rounds`: how many there are; static.
    - `opaque`: the opacity from which on a ray wants no more; static.

    **Returns:**

    What there is at all samples.
    """
    wanted, done, parts = steps.count, jnp.zeros_like(steps.count), []
    depth = jnp.zeros(done.shape)
    for later in reversed(range(rounds)):
        share = partial(even_shares, most=steps.candidates) if later else whole_shares
        shares = share(wanted, room)
        listed = take(steps, done, shares, room)
        samples = ask(listed)
        parts.append((listed, samples))
        done, wanted = done + shares, wanted - shares
        if later:
            depth = depth + _by_ray(listed, samples, depth.shape[0])
            wanted = jnp.where(jnp.exp(-depth) > 1 - opaque, wanted, 0)
    if rounds > 1:
        listed, samples = _in_order(parts, steps, jnp.where(wanted > 0, 0, done))
    return Answer(listed, samples, done + wanted, wanted)


def _by_ray(listed: Listed, samples: Samples, rays: int) -> Float[Array, " rays"]:
    """The optical depth that samples add to each ray; a constant."""
    depth = jax.lax.stop_gradient(samples.optical_depth)
    return jax.ops.segment_sum(depth, listed.ray, rays, indices_are_sorted=True)


def _in_order(
    parts: list[tuple[Listed, Samples]], steps: Steps, kept: Int[Array, " rays"]
) -> tuple[Listed, Samples]:
    """One list of all rounds: ray after ray, without rays that keep nothing."""
    listed, samples = jax.tree.map(lambda *xs: jnp.concatenate(xs), *parts)
    length = listed.valid.shape[0]
    place = (jnp.cumsum(kept) - kept)[listed.ray] + listed.rank
    place = jnp.where(listed.valid & (kept[listed.ray] > 0), place, length)

    def move(x: Array) -> Array:
        return jnp.zeros_like(x).at[place].set(x, mode="drop")

    return take(steps, jnp.zeros_like(kept), kept, length), jax.tree.map(move, samples)
